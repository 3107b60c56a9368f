"""The HIP compiler for NVIDIA's processors as a command, with real compilers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.compilations import Completed, compile_once
from tests.testkit.hip_drivers import run_driver

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DRIVER = ROOT / "toolchains" / "hip" / "driver" / "compile_hip.py"
ZIG = Path(sysconfig.get_path("platlib"), "ziglang")
INSTALLED = Path("/usr/local/cuda")

Kernels = list[dict[str, Any]]


@dataclass(frozen=True)
class CudaDriver:
    """HIP's driver for NVIDIA's processors, as a command with its compilers."""

    cuda: str
    host: tuple[str, ...]
    anew: bool = False
    """Whether each compilation is run, though an equal one is kept."""

    def run(self, source: Path, output: Path, *options: str, arch: str = "sm_90") -> Completed:
        """Compile a kernel, as it is done in a build."""
        command = [sys.executable, str(DRIVER), "cuda", "kernel", str(source), "-o", str(output)]
        command += ["--compiler", self.cuda, *self.host, "--arch", arch, *options]
        if self.anew or str(INSTALLED) in self.cuda or "zig:" not in "".join(self.host):
            return run_driver(command)
        return compile_once(command, source, output)

    def build(self, source: Path, output: Path, *options: str, arch: str = "sm_90") -> Kernels:
        """Compile a kernel; it must succeed. What its kernels take."""
        done = self.run(source, output, *options, arch=arch)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def runtime(self, output: Path) -> None:
        """The library that kernels need when they run."""
        command = [sys.executable, str(DRIVER), "cuda", "runtime", "-o", str(output)]
        subprocess.run([*command, "--compiler", self.cuda], check=True)

    def refuse(self, source: Path, *options: str) -> str:
        """The message for a kernel's source that is wrong."""
        done = self.run(source, source.with_suffix(".so"), *options)
        assert done.returncode == 1, (done.returncode, done.stderr)
        return done.stderr


def find_driver() -> CudaDriver:
    """With the pinned compilers, or the machine's; skips where there are neither."""
    cuda = _pinned("//toolchains/cuda:nvcc", fetch=not INSTALLED.is_dir())
    headers = _pinned("//toolchains/cuda:c++-headers", fetch=True)
    if cuda is None and not INSTALLED.is_dir():
        pytest.skip("no nvcc: its packages cannot be fetched, and none is installed")
    if headers is not None:
        host: tuple[str, ...] = ("--host", f"zig:{ZIG}", "--headers", str(headers))
    elif shutil.which("g++"):
        host = ("--host", "cxx:g++")
    else:
        pytest.skip("no C++ library's headers: they cannot be fetched, and no g++ is installed")
    return CudaDriver(f"nvcc:{cuda or INSTALLED}", host)


def _pinned(name: str, *, fetch: bool) -> Path | None:
    """Where the store has a toolchain; None where it has not and cannot get it."""
    if fetch and _kabuild("fetch", name).returncode != 0:
        return None
    shown = json.loads(_kabuild("show", name, "--json").stdout)
    return Path(shown["home"]) if shown["state"] == "ready" else None


def _kabuild(*arguments: str) -> Completed:
    command = [sys.executable, "-m", "kabuild", "toolchain", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
