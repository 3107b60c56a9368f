"""Compiles a module's kernels for a GPU that need not be there, in their own sandbox.

The module is the candidate's and is run: its entry chooses which kernels are launched, and with
which constants. It shares a process with what writes the report, so a hostile one can write that
itself. It gains nothing: the report is bounded and read as data, and decides only what this
gate says of the module's own kernels. A compile error that it hides is met again where the module
is judged. No later gate reads the figures. Only the module's own runners get the compiled kernels.
There it could write the same files by itself, and the launch filter treats their code alike.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from base import places
from kernel_source import MachineFault
from namespaces import (  # type: ignore[import-not-found]
    Bind,
    Limits,
    SandboxError,
    View,
    fork_contained,
    system_binds,
)
from terms.launcher_types import MOST_LAUNCHERS, are_plain

MODULE = "/candidate/kernel.py"
"""Where a runner sees the module, too: compiled kernels name it in their line tables."""

CACHE = "/tmp/triton"  # noqa: S108 - where a runner's Triton keeps kernels, too
_REPORT_BYTES = 48 << 20
_BINARY_PATH = re.compile(r"[A-Z2-7]{16,64}/[A-Za-z0-9_][A-Za-z0-9_.]{0,199}")
_MOST_BINARIES = 1 << 14
_START_SECONDS = 120.0
_SECONDS = 120.0
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_TMP_BYTES = 512 << 20
_MEMORY = 4 << 30
_PROCESSES = 64
_TEXT = 2000
_READY = b"ready\n"
"""What the report begins with: from there on, what goes wrong is the candidate's."""
_HIP = Path(__file__).resolve().parents[1] / "hip"
"""What reads compiled kernels."""

_PLATFORMS = _HIP.with_name("platforms")
"""What it knows of their architectures."""


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a module.

    Attributes:
        kernels: the resources of each kernel, as in the verdict of HIP's compile gate.
        error: why a kernel does not compile; empty where all did.
        line: its line in the module; 0 if all compile.
        left_out: why not all could be compiled without the GPU; empty where all were.
        binaries: Triton's cache of the compiled kernels, by path in its folder, in base64; empty
            unless all were compiled. Of a module that is called by a task's call, those that were.
        launchers: the types of their parameters, as ``ahead_run`` writes them.
    """

    kernels: tuple[Mapping[str, Any], ...] = ()
    error: str = ""
    line: int = 0
    left_out: str = ""
    binaries: Mapping[str, str] = field(default_factory=dict, hash=False)
    launchers: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """A line about the kernels."""
        count = len(self.kernels)
        said = f"{count} kernel{'' if count == 1 else 's'} compiled"
        why = self.left_out or self.error
        return f"{said}; not all: {why}" if why else said


def compile_ahead(text: str, spec: Path) -> Compiled:
    """Run the entry of the module with this text, or the call, on each of the task's configs.

    There is no data and need be no GPU. Raises MachineFault when that was not possible, whatever
    the module is.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, Path(MODULE).name)
        source.write_text(text, "utf-8")
        os.utime(source, (0, 0))  # ptxas writes it into line tables
        said = json.loads(spec.read_text("utf-8"))
        files = {places.ADAPTER: said.get("adapter"), places.MODULES: said.get("modules")}
        binds = [Bind(str(Path(path).absolute()), at) for at, path in files.items() if path]
        ready, report, limit = _contained(source, said, binds)
    if ready != _READY:
        raised = (ready + report).decode("utf-8", "replace")
        raise MachineFault(raised or limit or "Triton's compiler did not start")
    return _understood(report, limit)


def _contained(
    source: Path, spec: Mapping[str, Any], files: Sequence[Bind]
) -> tuple[bytes, bytes, str]:
    """The first output of the sandboxed process, its report, and the limit that ended it."""
    read, write = os.pipe()
    try:
        pid = fork_contained(
            _view(source, files),
            Limits(memory_bytes=_MEMORY, processes=_PROCESSES, file_bytes=_TMP_BYTES),
            lambda: _work(spec, write),
            keep_fds=(write,),
        )
    except SandboxError as error:
        os.close(read)
        raise MachineFault(f"no sandbox to run the module in: {error}") from error
    finally:
        os.close(write)
    with os.fdopen(read, "rb", buffering=0) as pipe:
        ready, _ = _read(pipe.fileno(), len(_READY), _START_SECONDS)
        report, limit = _read(pipe.fileno(), _REPORT_BYTES, _SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return ready, report, limit


def _work(spec: Mapping[str, Any], report: int) -> int:
    """In the sandbox: what follows imports torch, Triton and, when all is ready, the candidate."""
    try:
        sys.path += [str(_HIP / "common"), str(_HIP / spec["platform"] / "driver")]
        os.environ["TRITON_CACHE_DIR"] = CACHE
        import ahead_run

        run = ahead_run.prepare(Path(MODULE), spec, Path(CACHE))
    except Exception:  # noqa: BLE001 - this process's output is not read
        os.write(report, traceback.format_exc().encode("utf-8", "replace"))
        return 1
    os.write(report, _READY)
    _write(report, json.dumps(run()).encode("utf-8", "backslashreplace"))
    return 0


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _view(source: Path, files: Sequence[Bind]) -> View:
    """The view of the sandbox: the module, the task's files for it, these tools, this Python."""
    binds = [*system_binds(), Bind(str(source.absolute()), MODULE), *files]
    binds += [Bind(path, path) for path in _python_paths()]
    return View(binds=tuple(binds), tmpfs=((_TMP, _TMP_BYTES),), cwd=_TMP, hostname="compiler")


def _python_paths() -> Iterator[str]:
    """The trees that this interpreter imports from."""
    own = (Path(__file__).resolve().parent, _HIP, _PLATFORMS)
    packages = (path for path in sys.path if Path(path).name.endswith("-packages"))
    seen: list[str] = ["/usr", "/lib", "/bin"]
    for named in (sys.base_prefix, sys.prefix, *map(str, own), *packages):
        for path in _ways(named):
            if Path(path).is_dir() and not any(Path(path).is_relative_to(other) for other in seen):
                seen.append(path)
                yield path


def _ways(path: str) -> Iterator[str]:
    """The place that ``path`` leads to, then itself and the links on the way there."""
    yield os.path.realpath(path)
    yield path
    while Path(path).is_symlink():
        path = os.path.normpath(Path(path).parent.resolve() / Path(path).readlink())
        yield path


def _read(descriptor: int, most: int, seconds: float) -> tuple[bytes, str]:
    """Read up to ``most`` bytes; returns them, and the limit that ended reading early, if any."""
    report = bytearray()
    deadline = time.monotonic() + seconds
    while len(report) < most:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return bytes(report), f"running it took longer than {seconds:.0f} s"
        data = os.read(descriptor, min(most - len(report), 1 << 20))
        if not data:
            return bytes(report), ""
        report += data
    return bytes(report), "its report is too long"


def _understood(report: bytes, limit: str) -> Compiled:
    """Parse the report, which is untrusted: only its form is checked."""
    try:
        said = json.loads(report)
        kernels = tuple(_kernel(kernel) for kernel in said["kernels"])
        error, left_out = _text(said["error"]), _text(said["left_out"])
        if type(line := said["line"]) is not int:
            raise TypeError("a line is a number")
        if len(said["binaries"]) > _MOST_BINARIES:
            raise ValueError("too many files")
        binaries = dict(_binary(*item) for item in sorted(said["binaries"].items()))
        launchers = _launchers(said["launchers"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Compiled(left_out=limit or "running it ended early")
    return Compiled(kernels, error, line, left_out, binaries, launchers)


def _launchers(said: object) -> tuple[str, ...]:
    if not isinstance(said, list) or len(said) > MOST_LAUNCHERS:
        raise TypeError("a list of parameters' types is expected")
    if not all(isinstance(each, str) and are_plain(each) for each in said):
        raise TypeError("types of parameters are expected")
    return tuple(said)


def _binary(path: str, data: object) -> tuple[str, str]:
    """A file of Triton's cache: a plain path, and bytes in base64."""
    if not isinstance(data, str) or not _BINARY_PATH.fullmatch(path):
        raise TypeError("a compiled kernel's file is expected")
    base64.b64decode(data, validate=True)
    return path, data


def _kernel(said: object) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise TypeError("a kernel's figures are expected")
    if not all(isinstance(value, str | int) for value in said.values()):
        raise TypeError("a kernel's values are numbers and names")
    return {_text(k): _text(v) if isinstance(v, str) else v for k, v in sorted(said.items())}


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError("a text is expected")
    return said[:_TEXT]
