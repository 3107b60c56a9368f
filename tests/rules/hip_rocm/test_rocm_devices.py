"""What judge and runner call of AMD's HIP, against hip-python and a library that stands in.

No AMD device is at hand: what HIP's functions do is not tested, only that they are called by names
and with values and layouts that AMD's own package knows.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from base.device_platform import device_platform
from base.program import MachineFault
from gpu import memory, session
from gpu.driver import OUT_OF_MEMORY, Driver, NoDevice, open_driver
from hip import hip

from tests.testkit.c_compiler import compile_library
from tests.testkit.cli import REPOSITORY

CUDA, ROCM = device_platform("cuda"), device_platform("rocm")
TOOLS = REPOSITORY / "rules/harness/tools"
STAND_IN = """\
#include <stddef.h>
static int version;
void pretend(int number) { version = number; }
int hipRuntimeGetVersion(int* number) { *number = version; return 0; }
int hipInit(unsigned flags) { return version ? 0 : 100; }
int hipGetDeviceCount(int* count) { *count = 0; return 0; }
int hipMemImportFromShareableHandle(unsigned long long* handle, void* descriptor, int type) {
  *handle = version < 70100000 ? *(int*)descriptor : (int)(size_t)descriptor;
  return type == 1 ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a few of HIP's functions, of any version."""
    directory = tmp_path_factory.mktemp("hip")
    source, made = directory / "hip.c", directory / "libamdhip64.so.7"
    source.write_text(STAND_IN)
    return compile_library(made, [str(source)])


def test_the_judges_calls_are_hips() -> None:
    text = "".join(
        path.read_text() for path in (TOOLS / "gpu").glob("*.py") if path.stem != "state"
    )
    names = {ROCM.driver.spell(name) for name in re.findall(r'"(cu[A-Z]\w+)"', text)}

    assert {"hipMemCreate", "hipMemExportToShareableHandle", "hipGetDeviceCount"} < names
    assert [name for name in sorted(names) if not hasattr(hip, name)] == []
    assert CUDA.driver.spell("cuMemCreate") == "cuMemCreate"


def test_the_runners_calls_are_hips() -> None:
    names = re.findall(r'\{"(hip\w+)", ', (TOOLS / "runner_rocm/driver.cpp").read_text())

    assert len(names) > 20
    assert [name for name in names if not hasattr(hip, name)] == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (memory._Location, "hipMemLocation"),
        (memory._Properties, "hipMemAllocationProp"),
        (memory._Access, "hipMemAccessDesc"),
    ],
)
def test_layouts_are_hips(ours: Any, theirs: str) -> None:
    assert ctypes.sizeof(ours) == getattr(hip, theirs)().c_sizeof()


def test_values_are_hips() -> None:
    assert int(hip.hipMemAllocationType.hipMemAllocationTypePinned) == memory._PINNED
    posix = hip.hipMemAllocationHandleType.hipMemHandleTypePosixFileDescriptor
    assert int(posix) == memory._POSIX_DESCRIPTOR
    assert int(hip.hipMemLocationType.hipMemLocationTypeDevice) == memory._ON_DEVICE
    assert int(hip.hipMemAccessFlags.hipMemAccessFlagsProtReadWrite) == memory._READ_WRITE
    assert int(hip.hipError_t.hipErrorOutOfMemory) == OUT_OF_MEMORY
    header = (TOOLS / "runner_cuda/driver.h").read_text()
    assert f"kSpin = {int(hip.hipDeviceScheduleSpin)};" in header
    relaxed = int(hip.hipStreamCaptureMode.hipStreamCaptureModeRelaxed)
    assert f"kRelaxedCapture = {relaxed};" in header


@pytest.mark.parametrize("version", [60342134, 70051831, 70125424])
def test_a_descriptor_is_passed_as_that_version_takes_it(library: Path, version: int) -> None:
    loaded = ctypes.CDLL(str(library))
    loaded.pretend(version)
    driver, handle = Driver(loaded, ROCM.driver), ctypes.c_ulonglong(0)

    driver.call("cuMemImportFromShareableHandle", ctypes.byref(handle), driver.descriptor(33), 1)

    assert handle.value == 33


def test_an_old_library_is_named(library: Path) -> None:
    with pytest.raises(MachineFault, match="too old: it lacks hipMemCreate"):
        Driver(ctypes.CDLL(str(library)), ROCM.driver).call("cuMemCreate")


@pytest.mark.parametrize(
    ("version", "said"), [(0, "hipInit returned error 100"), (70125424, "the driver shows none")]
)
def test_no_device_is_said_of_the_platform(
    library: Path, monkeypatch: pytest.MonkeyPatch, version: int, said: str
) -> None:
    ctypes.CDLL(str(library)).pretend(version)
    monkeypatch.setattr(
        "gpu.driver.ctypes.CDLL", lambda _name, load=ctypes.CDLL: load(str(library))
    )

    with pytest.raises(NoDevice, match=f"NO_DEVICE: no rocm device on this machine: {said}"):
        open_driver(ROCM)


@pytest.mark.parametrize(
    ("platform", "built"), [("cuda", torch.version.cuda), ("rocm", torch.version.hip)]
)
def test_a_pytorch_for_other_devices_is_named(platform: str, built: str | None) -> None:
    if built:
        pytest.skip(f"this PyTorch is for {platform}")
    with pytest.raises(NoDevice, match=f"PyTorch {re.escape(torch.__version__)} is not built for"):
        session.start(platform)
