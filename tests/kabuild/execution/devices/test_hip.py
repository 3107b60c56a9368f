"""AMD's runtime as ``kabuild doctor`` asks it: one compiled for the test, and one that is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kabuild.execution.devices.hip import HipRuntime, ask, file_version, find_hip
from kabuild.execution.devices.libraries import find_library

SOURCE = """
int hipRuntimeGetVersion(int* version) { *version = 60342134; return 0; }
int hipGetDeviceCount(int* count) { *count = DEVICES; return DEVICES ? 0 : 100; }
const char* hipGetErrorString(int status) { return status == 100 ? "no device" : "other"; }
"""


def compiled(directory: Path, devices: int) -> None:
    source = directory / "hip.c"
    source.write_text(SOURCE)
    made = directory / "libamdhip64.so.6.3.60300"
    flags = ("-shared", "-fPIC", f"-DDEVICES={devices}", "-o", str(made))
    subprocess.run([sys.executable, "-m", "ziglang", "cc", str(source), *flags], check=True)
    (directory / "libamdhip64.so.6").symlink_to(made)


@pytest.mark.parametrize(("devices", "problem"), [(2, ""), (0, "no device")])
def test_a_runtime_says_what_it_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: int, problem: str
) -> None:
    compiled(tmp_path, devices)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    library = find_hip()

    assert library is not None
    assert file_version(library) == "6.3.60300"
    assert ask(library) == HipRuntime("6.3.42134", devices, problem)


@pytest.mark.parametrize("other", ["no library", "libc.so.6"])
def test_what_is_no_such_library_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    loadable = find_library(other)
    (tmp_path / "libamdhip64.so.7").symlink_to(loadable.path if loadable else __file__)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    library = find_hip()

    assert library is not None
    with pytest.raises(OSError, match=r"libamdhip64|hipRuntimeGetVersion"):
        ask(library)
