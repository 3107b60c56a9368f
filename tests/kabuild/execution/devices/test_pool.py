"""Devices while they are used: shown, and void where they were lost or somebody else's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.errors import DeviceError, InfraError, Interrupted, KabuildError, Reason
from kabuild.execution.devices import DevicePool
from kabuild.model.device import Device, Devices, Exposure
from kabuild.platform import Remark

DEVICE = Device("cuda", 0, "GPU-0", "sm_90")


class Driver:
    """A driver that answers what a test says."""

    def __init__(self) -> None:
        self.gone = ""
        self.using: list[tuple[int, ...]] = []

    def probe(self) -> Devices:
        return Devices("cuda", (DEVICE,))

    def lost(self, device: Device) -> str:
        return self.gone

    def users(self, device: Device) -> tuple[int, ...]:
        return self.using.pop(0) if self.using else ()

    def exposure(self, device: Device) -> Exposure:
        return Exposure((f"/dev/{device.uuid}",))

    def remarks(self) -> tuple[Remark, ...]:
        return ()


@pytest.fixture
def vendor() -> Driver:
    return Driver()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def pool(vendor: Driver, slept: list[float]) -> DevicePool:
    return DevicePool(Devices("cuda", (DEVICE,)), vendor, grace=0.3, sleep=slept.append)


def lose_while_using(pool: DevicePool, vendor: Driver, ends: KabuildError | None) -> None:
    """Use the device, which is lost; then end well, or with an error."""
    with pool.using(DEVICE.lease, timed=True):
        vendor.gone = "fell off the bus"
        if ends:
            raise ends


def test_a_lease_shows_its_device(pool: DevicePool) -> None:
    with pool.using(DEVICE.lease, timed=True) as exposure:
        assert exposure.mounts == ("/dev/GPU-0",)


@pytest.mark.parametrize("lease", ["", "cpu", "cuda-GPU-1"])
def test_what_is_no_device_shows_nothing(pool: DevicePool, vendor: Driver, lease: str) -> None:
    vendor.gone = "and nobody asks"

    with pool.using(lease, timed=True) as exposure:
        assert exposure == Exposure()


def test_a_device_that_is_lost_before_is_not_used(pool: DevicePool, vendor: Driver) -> None:
    vendor.gone = "fell off the bus"

    with pytest.raises(DeviceError) as caught, pool.using(DEVICE.lease, timed=False):
        raise AssertionError("used")

    assert caught.value.reason is Reason.DEVICE_LOST
    assert caught.value.message == "cuda:0 no longer answers: fell off the bus"
    assert not caught.value.spoiled


@pytest.mark.parametrize("ends", [None, InfraError(Reason.SANDBOX_FAILED, "the runner died")])
def test_a_device_that_is_lost_meanwhile_voids_what_came_of_it(
    pool: DevicePool, vendor: Driver, ends: InfraError | None
) -> None:
    with pytest.raises(DeviceError) as caught:
        lose_while_using(pool, vendor, ends)

    assert caught.value.reason is Reason.DEVICE_LOST
    assert caught.value.spoiled
    assert caught.value.__cause__ is ends


def test_a_device_whose_file_is_gone_is_lost(vendor: Driver, tmp_path: Path) -> None:
    """A driver that is reloaded takes them away; an action would be told that of its sandbox."""
    file = tmp_path / "nvidia0"
    file.touch()
    pool = DevicePool(Devices("cuda", (replace(DEVICE, nodes=(str(file),)),)), vendor)

    with pytest.raises(DeviceError) as caught, pool.using(DEVICE.lease, timed=False):
        file.unlink()

    assert caught.value.message == f"cuda:0 no longer answers: {file} is missing"


def test_a_fault_of_the_machine_on_a_sound_device_stays_what_it_is(pool: DevicePool) -> None:
    fault = InfraError(Reason.SANDBOX_FAILED, "no more processes")

    with pytest.raises(InfraError) as caught, pool.using(DEVICE.lease, timed=True):
        raise fault

    assert caught.value is fault


def test_an_interruption_asks_nobody(pool: DevicePool, vendor: Driver) -> None:
    with pytest.raises(Interrupted):
        lose_while_using(pool, vendor, Interrupted(Reason.INTERRUPTED, "stopped"))


def test_times_are_not_measured_beside_others(pool: DevicePool, vendor: Driver) -> None:
    vendor.using = [(7, 42)] * 10

    with pytest.raises(DeviceError) as caught, pool.using(DEVICE.lease, timed=True):
        raise AssertionError("measured")

    assert caught.value.reason is Reason.DEVICE_BUSY
    assert caught.value.message == "cuda:0 is busy: processes 7 and 42 compute on it"
    assert not caught.value.spoiled


def test_others_who_come_meanwhile_void_the_times(pool: DevicePool, vendor: Driver) -> None:
    with pytest.raises(DeviceError) as caught, pool.using(DEVICE.lease, timed=True):
        vendor.using = [(7,)] * 10

    assert caught.value.message == "cuda:0 is busy: process 7 computes on it"
    assert caught.value.spoiled


def test_who_has_just_been_killed_may_still_be_listed(
    pool: DevicePool, vendor: Driver, slept: list[float]
) -> None:
    vendor.using = [(7,), (7,)]

    with pool.using(DEVICE.lease, timed=True):
        assert len(slept) == 2


def test_what_measures_nothing_may_have_company(pool: DevicePool, vendor: Driver) -> None:
    vendor.using = [(7,)] * 10

    with pool.using(DEVICE.lease, timed=False) as exposure:
        assert exposure.mounts
