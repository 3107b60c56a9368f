"""A driver that never answers keeps nobody waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kabuild.execution.devices.timeout import WithTimeout, answer
from kabuild.model.device import Device, Devices, Exposure
from kabuild.platform import Remark

DEVICE = Device("cuda", 0, "GPU-0", "sm_90")


class Stuck:
    """A vendor whose driver answers when ``freed`` is set."""

    def __init__(self, freed: threading.Event) -> None:
        self.freed = freed

    def probe(self) -> Devices:
        self.freed.wait()
        return Devices("cuda", (DEVICE,))

    def lost(self, device: Device) -> str:
        self.freed.wait()
        return f"{device.name} is gone"

    def users(self, device: Device) -> tuple[int, ...]:
        self.freed.wait()
        return (device.index + 42,)

    def exposure(self, device: Device) -> Exposure:
        return Exposure((device.uuid,))

    def remarks(self) -> tuple[Remark, ...]:
        self.freed.wait()
        return (Remark("library", "1.0", good=True),)


@pytest.fixture
def freed() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_driver_that_does_not_answer_has_no_device_and_has_lost_those_it_had(
    freed: threading.Event,
) -> None:
    vendor = WithTimeout("cuda", Stuck(freed), seconds=0.01)

    assert vendor.probe() == Devices("cuda", absent="the driver has not answered for 0.01 s")
    assert vendor.lost(DEVICE) == "the driver has not answered for 0.01 s"
    assert vendor.users(DEVICE) == ()
    assert vendor.exposure(DEVICE).mounts == ("GPU-0",)
    assert [(said.good, said.found) for said in vendor.remarks()] == [
        (False, "the driver has not answered for 0.01 s")
    ]


def test_what_a_driver_answers_in_time_is_its_answer(freed: threading.Event) -> None:
    freed.set()
    vendor = WithTimeout("cuda", Stuck(freed))

    assert vendor.probe().found == (DEVICE,)
    assert vendor.lost(DEVICE) == "cuda:0 is gone"
    assert vendor.users(DEVICE) == (42,)
    assert vendor.remarks() == (Remark("library", "1.0", good=True),)


def test_what_asking_raises_is_raised() -> None:
    with pytest.raises(OSError, match="no such library"):
        answer(lambda: (_ for _ in ()).throw(OSError("no such library")))
