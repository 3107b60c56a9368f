"""HIP on the CPU, compiled and run for real."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ziglang

HERE = Path(__file__).resolve().parent
DRIVER = HERE.parents[2] / "toolchains" / "hip" / "cpu" / "driver"
ZIG = f"zig:{Path(ziglang.__file__).parent}"
SUCCESS = 0

sys.path.insert(0, str(DRIVER))


@dataclass(frozen=True)
class Driver:
    """The command ``hipcpu.py``."""

    compiler: str = ZIG

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess:
        command = [sys.executable, str(DRIVER / "hipcpu.py"), *map(str, arguments)]
        command += ["--compiler", self.compiler]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)

    def build(self, *arguments: str | Path) -> None:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr

    def refuse(self, source: Path, *arguments: str | Path) -> str:
        """The message for a source that is wrong."""
        done = self.run("kernel", source, "-o", source.with_suffix(".so"), *arguments)
        assert done.returncode == 1, (done.returncode, done.stderr)
        return done.stderr


@pytest.fixture(scope="session")
def driver() -> Driver:
    return Driver()


@pytest.fixture(scope="session")
def runtime(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime's library, built and loaded as the runner does it."""
    path = tmp_path_factory.mktemp("runtime") / "libhipcpu.so"
    driver.build("runtime", "-o", path)
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return path


@dataclass(frozen=True)
class Library:
    """A kernel's library; numpy arrays are passed as pointers, numbers by their numpy type."""

    path: Path
    handle: ctypes.CDLL

    def __call__(self, function: str, *arguments: Any) -> int:
        return int(self.handle[function](*map(_argument, arguments)))

    def run(self, function: str, *arguments: Any) -> None:
        assert self(function, *arguments) == SUCCESS


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, float):
        return ctypes.c_float(value)
    return value


Load = Callable[..., Library]


@pytest.fixture(scope="session")
def load(driver: Driver, runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """``load(name, wave)``: a kernel of ``kernels/``, compiled once per session."""
    directory = tmp_path_factory.mktemp("kernels")

    @cache
    def load_once(name: str, wave: int = 64) -> Library:
        path = directory / f"{name}-{wave}.so"
        driver.build("kernel", HERE / "kernels" / f"{name}.hip", "-o", path, "--wave", str(wave))
        return Library(path, ctypes.CDLL(str(path)))

    return load_once


@pytest.fixture(scope="session")
def in_process(runtime: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run Python code in a process of its own, with the runtime loaded as ``rt``."""

    def run(code: str, **environment: str) -> subprocess.CompletedProcess:
        start = f"import ctypes, os\nrt = ctypes.CDLL({str(runtime)!r}, mode=ctypes.RTLD_GLOBAL)\n"
        return subprocess.run(
            [sys.executable, "-c", start + code],
            env={"PATH": "/usr/bin:/bin", **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run
