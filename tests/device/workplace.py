"""A copy of the repository that uses the compilers of this machine, and kabuild in it."""

from __future__ import annotations

import compileall
import importlib.util
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[2]
PLATFORM = f"--platform={os.environ.get('KABUILD_PLATFORM', 'cuda')}"
_CUDA_PARTS = (
    "bin/nvcc",
    "bin/cudafe++",
    "bin/fatbinary",
    "bin/ptxas",
    "nvvm/bin/cicc",
    "nvvm/libdevice",
    "include",
    "lib64/libcudart.so.13",
)
_SANITIZER = "compute-sanitizer"
_HOST = """
[[toolchain]]
name  = "gcc"
role  = "c++-compiler"
doc   = "The C++ compiler of this machine."
local = "/usr"
paths = {paths}
"""
_BY_HOST = 'host = ":gcc"\nprogram = "bin/g++"\n'
_HOSTED = ('"cuda"\n', '"cuda_launch_filter"\n')
"""The names of the targets that the machine's own compiler builds."""

_LEFT_OUT = ("out", "results", "__pycache__", ".*", "shared")
_GRACE = 30.0
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Ran:
    """How one call of kabuild ended; ``code`` is 124 where it took too long."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> Any:
        """What it printed with --json; empty where it did not get so far."""
        try:
            return json.loads(self.out)
        except ValueError:
            return {"targets": [], "said": self.err[-2000:]}

    @property
    def broken(self) -> dict[str, str]:
        """Why it has not done everything, for what a stage leaves; empty where it has."""
        return {"broke off": f"it ended with {self.code}: {self.err[-2000:]}"} if self.code else {}


@dataclass(frozen=True)
class Workplace:
    """The copy, and a store of its own.

    Attributes:
        deadline: by the monotonic clock, when calls of kabuild are interrupted.
        flags: given with each call that judges; which devices to use, say.
    """

    root: Path
    store: Path
    deadline: float = math.inf
    flags: tuple[str, ...] = ()

    @classmethod
    def make(cls, folder: Path) -> Workplace:
        """Copy the repository below ``folder`` and have it use what is installed here.

        What an earlier call has left there is used again.
        """
        compile_python()
        made = cls.copied(folder)
        if "cuda" in PLATFORM:
            made._adopt()
        return made

    @classmethod
    def copied(cls, folder: Path) -> Workplace:
        """Copy the repository below ``folder``, with its own toolchains."""
        root = folder / "kabuild"
        ignored = shutil.ignore_patterns(*_LEFT_OUT)
        shutil.copytree(ROOT, root, ignore=ignored, dirs_exist_ok=True)
        return cls(root, folder / "store")

    def until(self, deadline: float, flags: tuple[str, ...] = ()) -> Workplace:
        """The same for what has less time, and maybe fewer devices."""
        return replace(self, deadline=deadline, flags=flags)

    def _adopt(self) -> None:
        home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")).resolve()
        self._pin("nvcc", home, _CUDA_PARTS)
        if (home / _SANITIZER).is_dir():
            self._pin("sanitizer", home, [_SANITIZER])
        own = os.environ.get("HOST_COMPILER") == "g++"
        if own or importlib.util.find_spec("ziglang") is None:
            hip = self.root / "toolchains/hip/BUILD.toml"
            text = (ROOT / "toolchains/hip/BUILD.toml").read_text()
            for name in _HOSTED:
                text = text.replace(name, name + _BY_HOST, 1)
            if importlib.util.find_spec("ziglang") is None:  # then nothing counts for agents
                compiler = 'compiler = ":gcc"\nprogram = "bin/g++"\n'
                text = text.replace('_counter"\n', f'_counter"\n{compiler}')
            hip.write_text(text + _HOST.format(paths=_gcc_parts()))

    def _pin(self, name: str, home: Path, parts: Sequence[str]) -> None:
        chosen = [f"--path={part}" for part in parts]
        label = f"//toolchains/cuda:{name}"
        ran = self.kabuild("toolchain", "pin", label, f"--from={home}", *chosen)
        if ran.code:
            raise SystemExit(ran.out + ran.err)

    @property
    def env(self) -> dict[str, str]:
        """The variables by which Python finds the copy's kabuild, and that its store."""
        paths = (str(self.root), os.environ.get("PYTHONPATH", ""))
        return os.environ | {
            "KABUILD_CACHE": str(self.store),
            "NO_COLOR": "1",
            "PYTHONPATH": ":".join(filter(None, paths)),
        }

    def start(self, *arguments: str, env: Mapping[str, str] = _NOTHING) -> subprocess.Popen[str]:
        """Start kabuild in the copy."""
        return subprocess.Popen(
            [sys.executable, "-m", "kabuild", *arguments],
            cwd=self.root,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kabuild(
        self, *arguments: str, timeout: float = 600.0, env: Mapping[str, str] = _NOTHING
    ) -> Ran:
        """Call kabuild in the copy and wait for it."""
        started = time.monotonic()
        left = max(1.0, self.deadline - started)
        return finish(self.start(*arguments, env=env), started, min(timeout, left))

    def program(
        self, *command: str, timeout: float = 600.0, env: Mapping[str, str] = _NOTHING
    ) -> Ran:
        """Run another program that finds the copy's kabuild, and wait for it."""
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        left = max(1.0, self.deadline - started)
        return finish(process, started, min(timeout, left))

    def script(
        self, name: str, tasks: Sequence[str], env: Mapping[str, str] = _NOTHING
    ) -> tuple[Any, Ran]:
        """What ``NAME PLATFORM OUT.json TASK...`` of this directory wrote, if only in part."""
        platform = PLATFORM.removeprefix("--platform=").partition(":")[0]
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.json"
            program = str(Path(__file__).with_name(name))
            ran = self.program(sys.executable, program, platform, str(out), *tasks, env=env)
            found = json.loads(out.read_bytes()) if out.exists() else {}
        return found, ran

    def test(self, *arguments: str, timeout: float = 600.0) -> Ran:
        """``kabuild test`` on the devices of this machine, as JSON."""
        given = ("test", *arguments, PLATFORM, "--json", *self.flags)
        return self.kabuild(*given, timeout=timeout)

    def output(self, label: str, file: str) -> Path:
        """Where a build has left one file: ``tasks/hip2hip/softmax``, ``softmax.perf``."""
        package, _, target = label.partition(":")
        return self.root / "out" / package / target / file

    def read(self, label: str, file: str) -> Mapping[str, Any]:
        """A JSON file of that kind; empty where there is none."""
        path = self.output(label, file)
        return json.loads(path.read_bytes()) if path.exists() else {}


def compile_python() -> None:
    """Make Python's ``.pyc`` files, as ``kabuild doctor`` advises where an installer has not."""
    found = importlib.util.find_spec("torch")
    home = Path(found.origin).parent if found and found.origin else None
    if home and not Path(importlib.util.cache_from_source(str(home / "functional.py"))).exists():
        compileall.compile_dir(home.parent, quiet=2, workers=0)


def finish(process: subprocess.Popen[str], started: float, timeout: float = 600.0) -> Ran:
    """Wait for a call; one that takes too long is interrupted and says what it has."""
    late = False
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        late = True
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    return Ran(124 if late else process.returncode, out, err, time.monotonic() - started)


def _within(home: Path, path: Path) -> str:
    """The path with its links followed, from ``home`` on."""
    return str(path.resolve().relative_to(home))


def _gcc_parts() -> str:
    """What of ``/usr`` is the C++ compiler, as TOML."""
    asked = ("cc1plus", "as", "ld", "collect2")
    found = [
        subprocess.run(
            ["/usr/bin/g++", f"-print-prog-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in asked
    ]
    paths = [Path("/usr/bin/g++"), *(Path(path) for path in found if path.startswith("/usr/"))]
    return json.dumps(sorted({_within(Path("/usr"), path) for path in paths} | {"bin/g++"}))
