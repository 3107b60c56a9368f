"""NVIDIA's devices: their properties, their problems, and the files that a sandbox needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kabuild.platform import (
    CHOSEN,
    Device,
    Devices,
    Driver,
    Exposure,
    Remark,
    existing,
    find_library,
    unreadable,
)

from . import cuda_driver
from .nvml import LIBRARY, Clock, Nvml, NvmlError, Status

PLATFORM = "cuda"
DRIVER_LIBRARIES = r"lib(cuda|nvidia-|nvcuvid|nvoptix)[^/]*\.so[.0-9]*"
_SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps")
_LEAST_CUDA = 13
"""The version that kernels are linked with: an older driver would refuse every launch."""

_COMPUTE_MODES = {1: "EXCLUSIVE_THREAD", 2: "PROHIBITED", 3: "EXCLUSIVE_PROCESS"}


class Nvidia:
    """The devices that NVIDIA's driver offers; ``dev`` and ``proc`` are where it shows them.

    The management library knows most. Where a container lacks it, CUDA itself is asked, which
    takes longer and does not know the power limit.
    """

    def __init__(self, dev: Path = Path("/dev"), proc: Path = Path("/proc/driver/nvidia")) -> None:
        self._dev = dev
        self._proc = proc
        self._libraries: dict[str, Nvml] = {}

    def probe(self) -> Devices:
        """All devices, or why there are none."""
        control = self._dev / "nvidiactl"
        if not control.exists():
            return Devices(
                PLATFORM, absent=f"{control} is missing: the NVIDIA driver is not loaded"
            )
        if find_library(cuda_driver.LIBRARY, places=cuda_driver.PLACES) is None:
            return Devices(PLATFORM, absent=f"the NVIDIA driver lacks {cuda_driver.LIBRARY} here")
        try:
            nvml = self._nvml()
            found = _all(nvml) if nvml else cuda_driver.devices(self._proc)
        except (OSError, NvmlError, cuda_driver.CudaError) as error:
            return Devices(PLATFORM, absent=f"the NVIDIA driver does not answer: {error}")
        checked = tuple(self._checked(device, minor) for device, minor in found)
        absent = "" if checked else "the NVIDIA driver has no device"
        return Devices(PLATFORM, checked, absent)

    def lost(self, device: Device) -> str:
        """Why the device does not answer any more. Without the management library: unknown."""
        try:
            if nvml := self._nvml():
                handle = nvml.handle(device.uuid)
                _memory(nvml, handle)
        except (OSError, NvmlError) as error:
            return str(error)
        return ""

    def users(self, device: Device) -> tuple[int, ...]:
        """Processes that compute on it; none if the driver does not say."""
        try:
            nvml = self._nvml()
            return nvml.processes(nvml.handle(device.uuid)) if nvml else ()
        except (OSError, NvmlError):
            return ()

    def exposure(self, device: Device) -> Exposure:
        """Its device file and those of the driver, and the driver's libraries."""
        library = find_library(cuda_driver.LIBRARY, places=cuda_driver.PLACES)
        libraries = library.siblings(DRIVER_LIBRARIES) if library else ()
        advice = library.directory if library and not library.by_default else ""
        return Exposure(
            mounts=(*device.nodes, *libraries),
            env=(("LD_LIBRARY_PATH", advice),) if advice else (),
            selection=(
                (CHOSEN, device.uuid),
                ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),  # how nvidia-smi counts them
                ("CUDA_VISIBLE_DEVICES", device.uuid),
            ),
        )

    def remarks(self) -> tuple[Remark, ...]:
        """Nothing: the devices say it all."""
        return ()

    def _nvml(self) -> Nvml | None:
        """The management library; None if there is none. Raises OSError and NvmlError."""
        library = find_library(LIBRARY, places=cuda_driver.PLACES)
        if library is None:
            return None
        if library.path not in self._libraries:
            self._libraries[library.path] = Nvml(library.path)
        return self._libraries[library.path]

    def _checked(self, device: Device, minor: int) -> Device:
        """The device with its files, and with the problem that forbids its use."""
        own = self._dev / f"nvidia{minor}"
        shared = existing(*(str(self._dev / name) for name in _SHARED_NODES))
        needed = (own, self._dev / "nvidiactl", self._dev / "nvidia-uvm")
        refused = unreadable(tuple(map(str, needed)))
        if refused.endswith("nvidia-uvm is missing"):
            refused += ", which 'nvidia-modprobe -u -c 0' makes"
        problems = (device.problem, _outdated(device), refused)
        return replace(device, problem=next(filter(None, problems), ""), nodes=(str(own), *shared))


def _outdated(device: Device) -> str:
    """Why its driver starts no kernels; empty if it does, or if its version is unknown."""
    version = dict(device.properties).get("runtime", "")
    major = version.partition(".")[0]
    if not major or int(major) >= _LEAST_CUDA:
        return ""
    return f"its driver supports CUDA {version}, but kernels need {_LEAST_CUDA} or newer"


def _all(nvml: Nvml) -> tuple[tuple[Device, int], ...]:
    """Every device without its files, and the numbers of their device files."""
    return tuple(_describe(nvml, index) for index in range(nvml.count()))


def _describe(nvml: Nvml, index: int) -> tuple[Device, int]:
    """One device; one that does not answer is listed, but unusable."""
    try:
        handle = nvml.numbered(index)
        return _answering(nvml, index, handle), nvml.minor(handle)
    except NvmlError as error:
        lost = Device(PLATFORM, index, f"lost-{index}", "", problem=f"it is lost: {error}")
        return lost, index


def _answering(nvml: Nvml, index: int, handle: ctypes.c_void_p) -> Device:
    major, minor = nvml.capability(handle)
    properties = {
        "device": nvml.model(handle),
        "memory": _memory(nvml, handle),
        "driver": nvml.driver(),
        "runtime": nvml.runtime(),
        "clocks": _clocks(nvml, handle),
        "power": _known(lambda: f"{nvml.power_cap(handle) // 1000} W"),
    }
    return Device(
        PLATFORM,
        index,
        nvml.uuid(handle),
        f"sm_{major}{minor}",
        tuple((name, value) for name, value in properties.items() if value),
        _problem(nvml, handle),
    )


def _memory(nvml: Nvml, handle: ctypes.c_void_p) -> str:
    """Its own memory; empty for a device that shares the machine's, as a GB10 does."""
    return _known(lambda: f"{nvml.memory(handle) >> 20} MiB")


def _clocks(nvml: Nvml, handle: ctypes.c_void_p) -> str:
    """The policy: the highest clocks, and those that applications are set to where they differ."""
    return ", ".join(
        filter(None, (_clock(nvml, handle, clock) for clock in (Clock.SM, Clock.MEMORY)))
    )


def _clock(nvml: Nvml, handle: ctypes.c_void_p, clock: Clock) -> str:
    highest = _known(lambda: str(nvml.max_clock(handle, clock)))
    chosen = _known(lambda: str(nvml.application_clock(handle, clock)))
    if not highest:
        return ""
    set_to = f"{chosen} of " if chosen not in {"", highest} else ""
    return f"{clock.name.lower()} {set_to}{highest} MHz"


def _problem(nvml: Nvml, handle: ctypes.c_void_p) -> str:
    """Why judge and candidate, two processes, cannot both use all of it."""
    mode = _known(lambda: _COMPUTE_MODES.get(nvml.compute_mode(handle), ""))
    if mode:
        return f"its compute mode is {mode}: judge and candidate are two processes"
    if _known(lambda: "yes" if nvml.is_partitioned(handle) else ""):
        return "it is divided by MIG, and only whole devices can be used"
    return ""


def _known(ask: Callable[[], str]) -> str:
    """The driver's answer; empty if it does not support the question."""
    try:
        return ask()
    except NvmlError as error:
        if error.status in {Status.NOT_SUPPORTED, Status.NO_PERMISSION, Status.FUNCTION_NOT_FOUND}:
            return ""
        raise


DRIVER: Driver = Nvidia()
