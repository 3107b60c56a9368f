"""NVIDIA's devices: found, described, watched; whatever state the driver is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.platform import find_library
from tests.testkit.fake_nvidia import FakeNvidia, gpu
from toolchains.platforms.cuda.cuda_driver import LIBRARY as CUDA
from toolchains.platforms.cuda.devices import Nvidia
from toolchains.platforms.cuda.nvml import LIBRARY as MANAGEMENT


def test_a_machine_without_the_driver_says_so(tmp_path: Path) -> None:
    found = Nvidia(tmp_path).probe()

    assert found.found == ()
    assert found.absent == f"{tmp_path}/nvidiactl is missing: the NVIDIA driver is not loaded"


def test_device_files_without_libraries_are_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setattr("toolchains.platforms.cuda.devices.find_library", lambda *_, **__: None)

    assert Nvidia(tmp_path).probe().absent == "the NVIDIA driver lacks libcuda.so.1 here"


def test_a_driver_without_a_device_says_so(fake: FakeNvidia) -> None:
    assert fake.vendor().probe().absent == "the NVIDIA driver has no device"


def test_a_driver_that_does_not_answer_says_what_it_answers(fake: FakeNvidia) -> None:
    fake.has(gpu(0), extra="dead")

    absent = fake.vendor().probe().absent

    assert absent == "the NVIDIA driver does not answer: nvmlInit_v2: Driver Not Loaded"


def test_a_library_that_is_none_is_no_crash(fake: FakeNvidia) -> None:
    (fake.libraries / MANAGEMENT).unlink()
    (fake.libraries / MANAGEMENT).write_text("not ELF")

    assert "the NVIDIA driver does not answer: " in fake.vendor().probe().absent


@pytest.mark.parametrize("missing", [MANAGEMENT, CUDA])
def test_a_library_without_the_functions_says_which(fake: FakeNvidia, missing: str) -> None:
    """Any other library does; CUDA is asked where there is no management library."""
    other = find_library("libc.so.6")
    assert other is not None
    (fake.libraries / MANAGEMENT).unlink()
    (fake.libraries / missing).unlink(missing_ok=True)
    (fake.libraries / missing).symlink_to(other.path)

    absent = fake.vendor().probe().absent

    function = {MANAGEMENT: "nvmlInit_v2", CUDA: "cuInit"}[missing]
    assert absent == f"the NVIDIA driver does not answer: {function}: not in this driver"


def test_a_device_is_described_by_all_that_changes_times(fake: FakeNvidia) -> None:
    fake.has(gpu(0), gpu(1, minor=3, clock=1500))

    first, second = fake.vendor().probe().found

    assert (first.name, first.arch) == ("cuda:0", "sm_90")
    assert dict(first.properties) == {
        "device": "NVIDIA H200",
        "memory": "143771 MiB",
        "driver": "580.159.04",
        "runtime": "13.0",
        "clocks": "sm 1980 MHz, memory 2619 MHz",
        "power": "700 W",
    }
    assert dict(second.properties)["clocks"] == "sm 1500 of 1980 MHz, memory 2619 MHz"
    dev = fake.root / "dev"
    assert second.nodes == tuple(map(str, (dev / "nvidia3", dev / "nvidiactl", dev / "nvidia-uvm")))
    assert first.lease != second.lease


def test_what_the_driver_does_not_know_is_left_out(fake: FakeNvidia) -> None:
    """Such as the memory of a device that shares the machine's."""
    fake.has(gpu(0, watts=0, mib=0))
    vendor = fake.vendor()

    (device,) = vendor.probe().found

    assert not {"power", "memory"} & dict(device.properties).keys()
    assert not device.problem
    assert vendor.lost(device) == ""


@pytest.mark.parametrize(
    ("mode", "problem"),
    [(1, "EXCLUSIVE_THREAD"), (2, "PROHIBITED"), (3, "EXCLUSIVE_PROCESS"), (9, "MIG")],
)
def test_a_device_that_two_processes_cannot_share_has_a_problem(
    fake: FakeNvidia, mode: int, problem: str
) -> None:
    fake.has(gpu(0, mode=mode))

    assert problem in fake.vendor().probe().found[0].problem


@pytest.mark.parametrize(
    ("name", "advice"),
    [("nvidia0", ""), ("nvidia-uvm", ", which 'nvidia-modprobe -u -c 0' makes")],
)
def test_a_device_without_its_files_has_a_problem(fake: FakeNvidia, name: str, advice: str) -> None:
    fake.has(gpu(0))
    node = fake.root / "dev" / name
    node.unlink()

    assert fake.vendor().probe().found[0].problem == f"{node} is missing{advice}"


def test_a_device_whose_files_may_not_be_opened_has_a_problem(
    fake: FakeNvidia, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may open anything, so the answer is made up."""
    fake.has(gpu(0))
    monkeypatch.setattr("os.access", lambda path, _: not path.endswith("nvidia0"))

    problem = fake.vendor().probe().found[0].problem

    assert problem == f"this user may not open {fake.root}/dev/nvidia0"


def test_a_driver_older_than_what_kernels_are_linked_with_has_a_problem(fake: FakeNvidia) -> None:
    fake.has(gpu(0), driver="565.57.01 12070")

    (device,) = fake.vendor().probe().found

    assert device.problem == "its driver supports CUDA 12.7, but kernels need 13 or newer"


def test_a_lost_device_leaves_the_others(fake: FakeNvidia) -> None:
    fake.has(gpu(0), gpu(1), extra="lost 0")

    first, second = fake.vendor().probe().found

    assert "GPU is lost" in first.problem
    assert not second.problem


def test_a_device_is_lost_when_it_falls_off_or_vanishes(fake: FakeNvidia) -> None:
    fake.has(gpu(0), gpu(1))
    vendor = fake.vendor()
    _, second = vendor.probe().found
    assert vendor.lost(second) == ""

    fake.has(gpu(0), gpu(1), extra="lost 1")
    assert "GPU is lost" in vendor.lost(second)
    fake.has(gpu(0))
    assert "Not Found" in vendor.lost(second)


def test_users_are_the_processes_that_compute_on_it(fake: FakeNvidia) -> None:
    fake.has(gpu(0), gpu(1), extra=f"user {gpu(1).uuid} 42\nuser {gpu(1).uuid} 7")
    vendor = fake.vendor()
    first, second = vendor.probe().found

    assert vendor.users(first) == ()
    assert vendor.users(second) == (7, 42)


def test_an_exposure_is_its_own_device_file_and_the_libraries(fake: FakeNvidia) -> None:
    fake.has(gpu(0), gpu(1))
    vendor = fake.vendor()
    exposure = vendor.exposure(vendor.probe().found[1])

    assert str(fake.root / "dev/nvidia1") in exposure.mounts
    assert str(fake.root / "dev/nvidia0") not in exposure.mounts
    assert str(fake.libraries / "libcuda.so.1") in exposure.mounts
    assert dict(exposure.env) == {"LD_LIBRARY_PATH": str(fake.libraries)}
    assert dict(exposure.selection) == {
        "KABUILD_DEVICE": gpu(1).uuid,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": gpu(1).uuid,
    }


@pytest.mark.parametrize("visible", [None, "", "1"])
def test_without_the_management_library_cuda_itself_is_asked(
    fake: FakeNvidia, monkeypatch: pytest.MonkeyPatch, visible: str | None
) -> None:
    """All devices are counted, whatever the user's variable hides: it is heeded later."""
    (fake.libraries / MANAGEMENT).unlink()
    (fake.root / "proc/version").write_text("NVRM version: NVIDIA UNIX  580.159.04  Tue\n")
    gpus = fake.root / "proc/gpus/0000:01:00.0"
    gpus.mkdir(parents=True)
    (gpus / "information").write_text(f"GPU UUID: \t {gpu(0).uuid}\nDevice Minor: \t 5\n")
    fake.has(gpu(0, minor=5))
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    vendor = fake.vendor()

    (device,) = vendor.probe().found

    fake.has(gpu(0, minor=5, watts=0))
    assert (device.uuid, device.arch) == (gpu(0).uuid, "sm_90")
    assert str(fake.root / "dev/nvidia5") in device.nodes
    assert dict(device.properties) == {
        "device": "NVIDIA H200",
        "memory": "143771 MiB",
        "driver": "580.159.04",
        "runtime": "13.0",
        "clocks": "sm 1980 MHz, memory 2619 MHz",
    }
    assert vendor.users(device) == ()
    assert vendor.lost(device) == ""
