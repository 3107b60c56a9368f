"""The vendors' own libraries have what is called of them. Skipped where a machine lacks them.

Nothing is initialised: NVIDIA's library makes device files where it may.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

from kabuild.platform import find_library
from toolchains.platforms.cuda import cuda_driver, nvml
from toolchains.platforms.rocm.hip_runtime import ask, file_version, find_hip

SOURCES = Path(nvml.__file__).parent


@pytest.mark.parametrize(
    ("library", "source", "prefix"),
    [(nvml.LIBRARY, "nvml.py", "nvml"), (cuda_driver.LIBRARY, "cuda_driver.py", "cu")],
)
def test_nvidias_libraries_have_the_functions(library: str, source: str, prefix: str) -> None:
    found = find_library(library, places=cuda_driver.PLACES)
    if found is None:
        pytest.skip(f"no {library} on this machine")
    loaded = ctypes.CDLL(found.path)
    names = re.findall(rf'"({prefix}[A-Z]\w+)"', (SOURCES / source).read_text())

    assert len(names) > 5
    assert [name for name in names if not hasattr(loaded, name)] == []


def test_amds_runtime_says_its_version_and_what_it_sees() -> None:
    library = find_hip()
    if library is None:
        pytest.skip("no libamdhip64 on this machine")
    runtime = ask(library)

    assert file_version(library).split(".")[0] == runtime.version.split(".")[0]
    assert bool(runtime.devices) != bool(runtime.problem)
