"""AMD's devices from the kernel's own description, whole or in pieces.

The trees are built as the amdgpu driver documents them; no AMD hardware is at hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchains.platforms.rocm.devices import Amd

UNIQUE = 0x1234_5678_9ABC_DEF0
PROPERTIES = f"""\
simd_count 1216
gfx_target_version 90402
drm_render_minor 129
unique_id {UNIQUE}
max_engine_clk_fcompute 2100
"""


class Machine:
    """The files of a machine with AMD's driver."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.vendor = Amd(root / "dev", root / "sys", root / "opt/rocm")

    def write(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def node(self, number: int, properties: str, gpu: str) -> None:
        """One node of the topology; number 0 is usually the CPU."""
        self.write(f"sys/class/kfd/kfd/topology/nodes/{number}/properties", properties)
        self.write(f"sys/class/kfd/kfd/topology/nodes/{number}/gpu_id", f"{gpu}\n")
        self.write(f"sys/class/kfd/kfd/topology/nodes/{number}/name", "ip discovery\n")

    def card(self, render: int) -> None:
        self.write(f"dev/dri/renderD{render}")
        card = f"sys/class/drm/renderD{render}/device"
        self.write(f"{card}/mem_info_vram_total", f"{192 << 30}\n")
        self.write(f"{card}/product_name", "AMD Instinct MI300X\n")
        self.write(f"{card}/power_dpm_force_performance_level", "auto\n")
        self.write(f"{card}/hwmon/hwmon3/power1_cap", "750000000\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One MI300X beside the CPU."""
    made = Machine(tmp_path)
    made.write("dev/kfd")
    made.node(0, "cpu_cores_count 64\ngfx_target_version 0\n", "0")
    made.node(1, PROPERTIES, "41234")
    made.write("sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties", "mem_clk_max 2525\n")
    made.card(129)
    made.write("sys/module/amdgpu/version", "6.10.5\n")
    made.write("opt/rocm/.info/version", "6.3.1-48\n")
    return made


def test_a_machine_without_the_driver_says_so(tmp_path: Path) -> None:
    found = Machine(tmp_path).vendor.probe()

    assert found.absent == f"{tmp_path}/dev/kfd is missing: the amdgpu driver is not loaded"


def test_a_device_is_described_by_all_that_changes_times(machine: Machine) -> None:
    (device,) = machine.vendor.probe().found

    assert (device.name, device.arch) == ("rocm:0", "gfx942")
    assert device.uuid == "GPU-123456789abcdef0"
    assert dict(device.properties) == {
        "device": "AMD Instinct MI300X",
        "memory": "196608 MiB",
        "driver": "6.10.5",
        "runtime": "6.3.1-48",
        "clocks": "engine 2100 MHz, memory 2525 MHz, auto",
        "power": "750 W",
    }
    assert not device.problem
    assert device.nodes == (str(machine.root / "dev/kfd"), str(machine.root / "dev/dri/renderD129"))


@pytest.mark.parametrize(
    ("version", "arch"),
    [
        (90010, "gfx90a"),
        (90402, "gfx942"),
        (90500, "gfx950"),
        (110000, "gfx1100"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
    ],
)
def test_the_kernels_number_names_the_architecture(
    machine: Machine, version: int, arch: str
) -> None:
    machine.node(1, PROPERTIES.replace("90402", str(version)), "41234")

    (device,) = machine.vendor.probe().found
    assert device.arch == arch
    assert device.problem == ""


def test_a_driver_with_nothing_to_drive_says_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write("dev/kfd")

    assert machine.vendor.probe().absent == "the amdgpu driver has no device"


def test_a_device_without_its_file_has_a_problem(machine: Machine) -> None:
    (machine.root / "dev/dri/renderD129").unlink()

    assert machine.vendor.probe().found[0].problem.endswith("/dev/dri/renderD129 is missing")


def test_what_the_kernel_does_not_say_is_left_out(machine: Machine) -> None:
    machine.node(1, "gfx_target_version 110000\ndrm_render_minor 129\n", "77")
    for path in ("sys/module/amdgpu/version", "opt/rocm/.info/version"):
        (machine.root / path).unlink()
    card = machine.root / "sys/class/drm/renderD129/device"
    (card / "hwmon/hwmon3/power1_cap").unlink()
    (card / "product_name").unlink()

    (device,) = machine.vendor.probe().found

    assert device.uuid == "kfd-77"
    assert device.model == "ip discovery"
    assert {"runtime", "power"}.isdisjoint(dict(device.properties))
    assert dict(device.properties)["driver"], "the kernel's version stands for that of its driver"


def test_a_device_is_lost_when_the_kernel_forgets_it(machine: Machine) -> None:
    (device,) = machine.vendor.probe().found
    assert machine.vendor.lost(device) == ""

    machine.node(1, "gfx_target_version 0\n", "0")

    assert machine.vendor.lost(device) == "it is no longer in the kernel's topology"


def test_users_are_the_processes_with_memory_on_it(machine: Machine) -> None:
    (device,) = machine.vendor.probe().found
    machine.write("sys/class/kfd/kfd/proc/42/vram_41234", "1048576\n")
    machine.write("sys/class/kfd/kfd/proc/43/vram_41234", "0\n")
    machine.write("sys/class/kfd/kfd/proc/44/vram_999", "1048576\n")

    assert machine.vendor.users(device) == (42,)


def test_an_exposure_shows_what_the_runtime_insists_on(machine: Machine) -> None:
    machine.node(2, PROPERTIES.replace(str(UNIQUE), "7").replace("129", "130"), "41235")
    machine.card(130)
    first, second = machine.vendor.probe().found

    exposure = machine.vendor.exposure(second)

    for path in ("dev/kfd", "dev/dri/renderD129", "dev/dri/renderD130", "sys/class/kfd"):
        assert str(machine.root / path) in exposure.mounts
    assert dict(exposure.selection) == {
        "KABUILD_DEVICE": "GPU-0000000000000007",
        "ROCR_VISIBLE_DEVICES": "GPU-0000000000000007",
    }
    assert first.lease != second.lease


@given(properties=st.binary(max_size=200), memory=st.binary(max_size=40), gpu=st.binary(max_size=8))
def test_no_tree_makes_it_fall(
    tmp_path_factory: pytest.TempPathFactory, properties: bytes, memory: bytes, gpu: bytes
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    machine.write("dev/kfd")
    machine.card(0)
    machine.node(1, "", "1")
    node = machine.root / "sys/class/kfd/kfd/topology/nodes"
    (node / "1/properties").write_bytes(b"gfx_target_version 90402\n" + properties)
    (node / "1/gpu_id").write_bytes(gpu)
    (machine.root / "sys/class/drm/renderD0/device/mem_info_vram_total").write_bytes(memory)
    (node / "no number").mkdir()
    (node / "2").mkdir()

    found = machine.vendor.probe()

    for device in found.found:
        assert device.lease
        machine.vendor.users(device)
        machine.vendor.exposure(device)
