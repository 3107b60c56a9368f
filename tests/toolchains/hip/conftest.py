"""HIP on the CPU, compiled and run for real."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.testkit.runtime import load_built
from tests.toolchains.hip.counting import build_runtime
from tests.toolchains.hip.support import HERE, Completed, Driver, InProcess, Library, Load


@pytest.fixture(scope="session")
def driver() -> Driver:
    return Driver()


@pytest.fixture(scope="session")
def runtime() -> Path:
    """The runtime's library, as the program builds it; loaded as the runner does it."""
    return load_built()


@pytest.fixture(scope="session")
def counting_runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime that counts, as its program builds it."""
    return build_runtime(tmp_path_factory.mktemp("counting"))


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
def in_process(runtime: Path) -> InProcess:
    """Run Python code in a process of its own, with the runtime loaded as ``rt``."""

    def run(code: str, **environment: str) -> Completed:
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
