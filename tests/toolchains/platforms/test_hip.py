"""AMD's runtime as ``kabuild doctor`` asks it: one compiled for the test, and one that is none.

Each question has a process of its own, because hip-python keeps the first runtime that it opens.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kabuild.platform import find_library
from tests.testkit.c_compiler import compile_library
from tests.testkit.cli import REPOSITORY
from toolchains.platforms.rocm.hip_runtime import HipRuntime, file_version, find_hip

SOURCE = """
int hipRuntimeGetVersion(int* version) { *version = 60342134; return 0; }
int hipGetDeviceCount(int* count) { *count = DEVICES; return DEVICES ? 0 : 100; }
const char* hipGetErrorString(int status) { return status == 100 ? "no device" : "other"; }
"""
ASK = """\
import os, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # what is None cannot be imported
from toolchains.platforms.rocm.hip_runtime import ask, find_hip
try:
    print(ask(find_hip()))
except OSError as error:
    print("OSError:", error)
print("hip" in sys.modules and sys.modules["hip"] is not None, os.environ.get("ROCM_PATH"))
"""
WAYS = pytest.mark.parametrize("without", [(), ("hip",)], ids=["hip-python", "ctypes"])


def compiled(directory: Path, devices: int) -> None:
    source = directory / "hip.c"
    source.write_text(SOURCE)
    made = directory / "libamdhip64.so.6.3.60300"
    compile_library(made, [str(source)], f"-DDEVICES={devices}")
    (directory / "libamdhip64.so.6").symlink_to(made)


def asked(directory: Path, *without: str) -> tuple[str, str]:
    """What a process answers that finds the runtime there, and how it came to that."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, *without],
        cwd=REPOSITORY,
        env={**os.environ, "LD_LIBRARY_PATH": str(directory), "ROCM_PATH": "/elsewhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer, how = done.stdout.splitlines()
    return answer, how


@WAYS
@pytest.mark.parametrize(
    ("devices", "problems"), [(2, {""}), (0, {"no device", "hipErrorNoDevice"})]
)
def test_a_runtime_says_what_it_sees(
    tmp_path: Path, devices: int, problems: set[str], without: tuple[str, ...]
) -> None:
    """There is no ``libamdhip64.so``, which hip-python would look for."""
    compiled(tmp_path, devices)

    answer, how = asked(tmp_path, *without)

    assert answer in {str(HipRuntime("6.3.42134", devices, problem)) for problem in problems}
    assert how == f"{not without} /elsewhere"


def test_the_version_is_in_the_files_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libamdhip64.so.6.3.60300").touch()
    (tmp_path / "libamdhip64.so.6").symlink_to("libamdhip64.so.6.3.60300")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    library = find_hip()

    assert library is not None
    assert file_version(library) == "6.3.60300"


@WAYS
@pytest.mark.parametrize("other", ["no library", "libc.so.6"])
def test_what_is_no_such_library_is_an_error(
    tmp_path: Path, other: str, without: tuple[str, ...]
) -> None:
    loadable = find_library(other)
    (tmp_path / "libamdhip64.so.7").symlink_to(loadable.path if loadable else __file__)

    answer, _ = asked(tmp_path, *without)

    assert answer.startswith("OSError: ")
    assert "libamdhip64" in answer or "hipRuntimeGetVersion" in answer
