"""AMD's devices, as the kernel describes them: no library is loaded to find them.

hip-python tells ``kabuild doctor`` what AMD's runtime says of them (``hip_runtime.py``). A build
does not ask it: loading the runtime uses all devices, and builds skip devices in use.
Written against the interface of the amdgpu driver (``/sys/class/kfd``) and never run on AMD's
hardware.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kabuild.platform import (
    CHOSEN,
    Device,
    Devices,
    Driver,
    Exposure,
    Remark,
    existing,
    unreadable,
)

from .hip_runtime import ask, file_version, find_hip

PLATFORM = "rocm"
_TOPOLOGY = "class/kfd/kfd/topology/nodes"
_PROCESSES = "class/kfd/kfd/proc"
_UNIQUE = "GPU-"
_SHOWN = ("class/kfd", "devices/virtual/kfd", "class/drm", "dev/char", "module/amdgpu")


@dataclass(frozen=True)
class _Node:
    """One node of the topology: its directory, gpu_id, and properties."""

    path: Path
    gpu: str
    values: Mapping[str, int]


class Amd:
    """The devices of the amdgpu driver; ``dev``, ``sys`` and ``rocm`` are where things lie."""

    def __init__(
        self,
        dev: Path = Path("/dev"),
        sys: Path = Path("/sys"),
        rocm: Path = Path("/opt/rocm"),
    ) -> None:
        self._dev = dev
        self._sys = sys
        self._rocm = rocm

    def probe(self) -> Devices:
        """All devices, or why there are none."""
        if not (self._dev / "kfd").exists():
            absent = f"{self._dev / 'kfd'} is missing: the amdgpu driver is not loaded"
            return Devices(PLATFORM, absent=absent)
        nodes = self._nodes()
        found = tuple(self._describe(index, node) for index, node in enumerate(nodes))
        return Devices(PLATFORM, found, "" if found else "the amdgpu driver has no device")

    def lost(self, device: Device) -> str:
        """Why the device does not answer any more."""
        there = any(_uuid(node) == device.uuid for node in self._nodes())
        return "" if there else "it is no longer in the kernel's topology"

    def users(self, device: Device) -> tuple[int, ...]:
        """Processes that have memory on it."""
        gpu = next((node.gpu for node in self._nodes() if _uuid(node) == device.uuid), "")
        processes = self._sys / _PROCESSES
        using = (file.parent.name for file in processes.glob(f"*/vram_{gpu}") if _number(file))
        return tuple(sorted(int(name) for name in using if name.isdecimal()))

    def exposure(self, device: Device) -> Exposure:
        """All device files, and what the kernel says of all devices.

        AMD's runtime opens each device that the kernel describes and gives up where one is
        missing, so only its own variable hides the others from an action.
        """
        shown = [str(self._sys / path) for path in _SHOWN]
        renders = sorted((self._dev / "dri").glob("renderD*"))
        cards = [os.path.realpath(self._sys / "class/drm" / r.name / "device") for r in renders]
        name = device.uuid if device.uuid.startswith(_UNIQUE) else str(device.index)
        return Exposure(
            mounts=(str(self._dev / "kfd"), *map(str, renders), *existing(*shown, *cards)),
            selection=((CHOSEN, name), ("ROCR_VISIBLE_DEVICES", name)),
        )

    def remarks(self) -> tuple[Remark, ...]:
        """Whether AMD's HIP runtime is there, and what it sees."""
        name, library = "HIP runtime", find_hip()
        if library is None:
            return (Remark(name, "none (AMD's libamdhip64)"),)
        try:
            runtime = ask(library)
        except OSError as error:
            return (Remark(name, f"{library.path} cannot be used: {error}", good=False),)
        sees = f"sees {runtime.devices} devices" if runtime.devices else runtime.problem
        return (Remark(name, f"{runtime.version} ({library.path}): {sees}", good=True),)

    def _nodes(self) -> list[_Node]:
        """The nodes with a GPU, in the kernel's order."""
        paths = (self._sys / _TOPOLOGY).glob("*")
        numbered = sorted((path for path in paths if path.name.isdecimal()), key=_by_number)
        nodes = (
            _Node(path, _text(path / "gpu_id"), _table(path / "properties")) for path in numbered
        )
        return [node for node in nodes if node.values.get("gfx_target_version")]

    def _describe(self, index: int, node: _Node) -> Device:
        render = f"renderD{node.values.get('drm_render_minor', 0)}"
        card = self._sys / "class/drm" / render / "device"
        memory = _number(card / "mem_info_vram_total") >> 20
        properties = {
            "device": _text(card / "product_name") or _text(node.path / "name"),
            "memory": f"{memory} MiB" if memory else "",
            "driver": _text(self._sys / "module/amdgpu/version") or os.uname().release,
            "runtime": _text(self._rocm / ".info/version") or _hip_version(),
            "clocks": _clocks(node, card),
            "power": _power_cap(card),
        }
        nodes = (str(self._dev / "kfd"), str(self._dev / "dri" / render))
        arch = _arch(node.values["gfx_target_version"])
        return Device(
            PLATFORM,
            index,
            _uuid(node),
            arch,
            tuple((name, value) for name, value in properties.items() if value),
            unreadable(nodes),
            nodes,
        )


def _clocks(node: _Node, card: Path) -> str:
    """The policy: the highest clocks, and how the driver is told to choose among them."""
    engine = node.values.get("max_engine_clk_fcompute", 0)
    memory = _table(node.path / "mem_banks/0/properties").get("mem_clk_max", 0)
    level = _text(card / "power_dpm_force_performance_level")
    parts = (
        f"engine {engine} MHz" if engine else "",
        f"memory {memory} MHz" if memory else "",
        level,
    )
    return ", ".join(filter(None, parts))


def _power_cap(card: Path) -> str:
    caps = sorted(card.glob("hwmon/*/power1_cap"))
    return f"{_number(caps[0]) // 1_000_000} W" if caps else ""


def _hip_version() -> str:
    library = find_hip()
    return file_version(library) if library else ""


def _arch(version: int) -> str:
    """``gfx942`` of 90402: a decimal major, then minor and stepping as hexadecimal digits."""
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _uuid(node: _Node) -> str:
    unique = node.values.get("unique_id", 0)
    return f"{_UNIQUE}{unique:016x}" if unique else f"kfd-{node.gpu}"


def _by_number(path: Path) -> int:
    return int(path.name)


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(file: Path) -> int:
    text = _text(file)
    return int(text) if text.isdecimal() else 0


def _table(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


DRIVER: Driver = Amd()
