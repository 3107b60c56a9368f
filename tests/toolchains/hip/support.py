"""The HIP compiler as a command, and kernels as libraries that take numpy arrays."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.testkit.hip_drivers import run_driver

HERE = Path(__file__).resolve().parent
HIP = HERE.parents[2] / "toolchains" / "hip"
ZIG = Path(sysconfig.get_path("platlib"), "ziglang")
SUCCESS = 0

Completed = subprocess.CompletedProcess[str]
InProcess = Callable[..., Completed]


@dataclass(frozen=True)
class Driver:
    """HIP's driver for the CPU, as a command."""

    compiler: str = f"zig:{ZIG}"

    def run(self, *arguments: str | Path) -> Completed:
        """Run it as it is run in a build; ``program`` is the host's own command."""
        native = arguments[0] == "program"
        driver = ("host/native.py",) if native else ("driver/compile_hip.py", "cpu")
        command = [sys.executable, str(HIP / driver[0]), *driver[1:], *map(str, arguments)]
        command += ["--compiler", self.compiler]
        return run_driver(command)

    def build(self, *arguments: str | Path) -> None:
        """Run it; it must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr

    def refuse(self, source: Path, *arguments: str | Path) -> str:
        """The message for a kernel's source that is wrong."""
        done = self.run("kernel", source, "-o", source.with_suffix(".so"), *arguments)
        assert done.returncode == 1, (done.returncode, done.stderr)
        return done.stderr


@dataclass(frozen=True)
class Library:
    """A kernel's library; arrays are passed as pointers, Python's floats as C's."""

    path: Path
    handle: ctypes.CDLL

    def __call__(self, function: str, *arguments: Any) -> int:
        """The result of an ``extern "C"`` function."""
        return int(self.handle[function](*map(_argument, arguments)))

    def run(self, function: str, *arguments: Any) -> None:
        """Call it; it must return hipSuccess."""
        assert self(function, *arguments) == SUCCESS


Load = Callable[..., Library]


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, float):
        return ctypes.c_float(value)
    return value
