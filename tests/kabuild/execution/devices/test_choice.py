"""Which devices a build uses, and what is said where it can use none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kabuild.base.errors import InfraError, Reason, UsageError
from kabuild.execution.devices import choose
from kabuild.model.device import Device, Devices
from kabuild.model.platform import Platform, PlatformSpec


def device(index: int, **different: object) -> Device:
    made = Device(
        "cuda",
        index,
        f"GPU-{index:04}-rest",
        "sm_90",
        (("device", "NVIDIA H200"), ("power", "700 W")),
    )
    return replace(made, **different)  # type: ignore[arg-type]


def machine(*devices: Device, absent: str = "") -> Devices:
    return Devices("cuda", devices, absent)


SPEC = PlatformSpec(
    "cuda",
    example="sm_90",
    architectures={"sm_80": "sm_80", "sm_90": "sm_90", "sm_90a": "sm_90"},
    visible=("CUDA_VISIBLE_DEVICES",),
)
CUDA = Platform("cuda")
SM_80, SM_90, SM_90A = (Platform("cuda", (("arch", arch),)) for arch in SPEC.architectures)
NONE = machine(absent="/dev/nvidiactl is missing: no NVIDIA driver")
TWO = machine(device(0), device(1))


def test_the_platform_has_what_its_devices_are() -> None:
    platform, devices = choose(SPEC, CUDA, TWO, env={})

    assert str(platform) == "cuda:sm_90"
    assert dict(platform.properties) == {
        "arch": "sm_90",
        "device": "NVIDIA H200",
        "power": "700 W",
    }
    assert devices.found == TWO.found
    assert not devices.notes


def test_without_a_device_the_architecture_has_to_be_said() -> None:
    with pytest.raises(InfraError) as caught:
        choose(SPEC, CUDA, NONE, env={})

    assert caught.value.reason is Reason.NO_DEVICE
    assert caught.value.message == (
        "no cuda device on this machine: /dev/nvidiactl is missing: no NVIDIA driver"
    )
    assert "--platform=cuda:sm_90" in caught.value.hint


def test_with_an_architecture_and_without_a_device_what_needs_none_goes_on() -> None:
    platform, devices = choose(SPEC, SM_90, NONE, env={})

    assert platform == SM_90
    assert not devices.found
    assert devices.absent.startswith("no cuda:sm_90 device on this machine: /dev/nvidiactl")


def test_a_device_of_another_architecture_is_none() -> None:
    platform, devices = choose(SPEC, SM_80, TWO, env={})

    assert platform == SM_80
    assert devices.absent == (
        "no cuda:sm_80 device on this machine: cuda:0 is sm_90, cuda:1 is sm_90"
    )


def test_what_only_one_architecture_can_runs_on_that_one() -> None:
    platform, devices = choose(SPEC, SM_90A, TWO, env={})

    assert platform.get("arch") == "sm_90a"
    assert len(devices.found) == 2


def test_only_the_devices_that_were_asked_for() -> None:
    _, devices = choose(SPEC, CUDA, TWO, only=(1,), env={"CUDA_VISIBLE_DEVICES": "0"})

    assert [found.index for found in devices.found] == [1]


@pytest.mark.parametrize(
    ("visible", "chosen"),
    [
        *(("0,1", [0, 1]), ("1", [1]), ("GPU-0001", [1]), ("GPU-0001-rest,0", [0, 1])),
        ("1,-1,0", [1]),
    ],
)
def test_the_vendors_variable_chooses_by_number_or_name(visible: str, chosen: list[int]) -> None:
    _, devices = choose(SPEC, CUDA, TWO, env={"CUDA_VISIBLE_DEVICES": visible})

    assert [found.index for found in devices.found] == chosen


@pytest.mark.parametrize("visible", ["", "-1", "GPU-", "7"])
def test_the_vendors_variable_can_hide_all(visible: str) -> None:
    with pytest.raises(InfraError) as caught:
        choose(SPEC, CUDA, TWO, env={"CUDA_VISIBLE_DEVICES": visible})

    assert caught.value.message.endswith(f": CUDA_VISIBLE_DEVICES={visible} hides all")


def test_an_unknown_number_is_named_with_what_there_is() -> None:
    with pytest.raises(UsageError) as caught:
        choose(SPEC, CUDA, TWO, only=(0, 7), env={})

    assert caught.value.reason is Reason.BAD_FLAG
    assert caught.value.message == "--devices: no device cuda:7"
    assert caught.value.hint == "this machine has cuda:0 (NVIDIA H200), cuda:1 (NVIDIA H200)"


def test_numbers_on_a_machine_without_devices_are_no_typing_mistake() -> None:
    with pytest.raises(InfraError) as caught:
        choose(SPEC, SM_90, NONE, only=(0,), env={})

    assert caught.value.reason is Reason.NO_DEVICE


def test_a_device_with_a_problem_is_left_out_and_said() -> None:
    broken = (device(index, problem="MIG divides it") for index in (0, 2))
    lost = device(3, problem="it is lost")

    _, devices = choose(SPEC, CUDA, machine(device(1), *broken, lost), env={})

    assert [found.index for found in devices.found] == [1]
    assert devices.notes == (
        "cuda:0, cuda:2 cannot be used: MIG divides it",
        "cuda:3 cannot be used: it is lost",
    )


def test_a_device_with_a_problem_that_was_asked_for_is_an_error() -> None:
    broken = device(0, problem="MIG divides it")

    with pytest.raises(InfraError) as caught:
        choose(SPEC, CUDA, machine(broken, device(1)), only=(0, 1), env={})

    assert caught.value.message == "cuda:0 cannot be used: MIG divides it"


def test_one_build_uses_equal_devices() -> None:
    """Times from different devices have different keys; a build has one."""
    slower = device(1, properties=(("device", "NVIDIA H200"), ("power", "500 W")))

    platform, devices = choose(SPEC, CUDA, machine(device(0), slower), env={})

    assert platform.get("power") == "700 W"
    assert [found.index for found in devices.found] == [0]
    assert devices.notes == ("cuda:1 differs from cuda:0 in power (500 W, not 700 W): skipped",)


@pytest.mark.parametrize(
    ("different", "how"),
    [
        ({"properties": (("device", "NVIDIA H200"),)}, "power (unknown, not 700 W)"),
        ({"arch": "sm_80"}, "arch (sm_80, not sm_90)"),
    ],
)
@pytest.mark.parametrize("asked", [CUDA, SM_90])
def test_unequal_devices_that_were_asked_for_are_an_error(
    asked: Platform, different: dict[str, object], how: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose(SPEC, asked, machine(device(0), device(1, **different)), only=(0, 1), env={})

    assert caught.value.message == f"--devices: cuda:1 differs from cuda:0 in {how}"


def test_a_device_of_another_architecture_than_was_asked_for_needs_no_word() -> None:
    _, devices = choose(SPEC, SM_90, machine(device(0, arch="sm_80"), device(1)), env={})

    assert [found.index for found in devices.found] == [1]
    assert not devices.notes
