"""The part of ``kabuild doctor`` about accelerators: which there are, and who has them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

from kabuild.cli.finding import Finding, State
from kabuild.execution.devices import vendor_of
from kabuild.execution.devices.choice import EXAMPLES
from kabuild.execution.devices.hip import ask, find_hip
from kabuild.model.device import Device
from kabuild.scheduler import FileLeases

_MAKERS = {"cuda": "NVIDIA GPU", "rocm": "AMD GPU"}
_UNITS = {"driver": "driver {}", "runtime": "runtime {}", "power": "at most {}"}
UNTRIED = (
    "AMD GPUs: kernels compile for them, and runner and probes were tried up to 'no device'; "
    "nothing of kabuild has run on one yet"
)
"""What nobody has seen work on hardware."""

_ORDER = ("memory", "driver", "runtime", "clocks", "power")


def find_devices(leases: Path) -> Iterator[Finding]:
    """The devices of all platforms; ``leases`` is where builds hold theirs."""
    for platform, maker in _MAKERS.items():
        there = vendor_of(platform).probe()
        if there.found:
            usable = sum(not device.problem for device in there.found)
            found = f"{len(there.found)}, {usable} to judge on with --platform={platform}"
            yield Finding(maker, State.OK if usable else State.WARNING, found)
        else:
            advice = f"kernels compile without one: --platform={EXAMPLES[platform]}"
            yield Finding(maker, State.OPTIONAL, f"none: {there.absent}", advice)
        for device in there.found:
            yield _device(device, leases)
        if there.found and platform == "rocm":
            yield from judging_pytorch(importlib.metadata.version("torch"))
    yield from _hip()
    yield Finding("never run", State.OPTIONAL, UNTRIED)


def judging_pytorch(version: str) -> Iterator[Finding]:
    """Whether the judge can compute on AMD's devices with this PyTorch."""
    if "rocm" not in version:
        found = f"{version}: not built for AMD's devices, so nothing can be judged on them"
        yield Finding("PyTorch", State.WARNING, found, "install a build of it for ROCm")


def describe(device: Device) -> str:
    """One device in one line."""
    properties = dict(device.properties)
    parts = [
        _UNITS.get(name, "{}").format(properties[name]) for name in _ORDER if properties.get(name)
    ]
    return ", ".join((device.model or "unknown", device.arch or "unknown architecture", *parts))


def _device(device: Device, leases: Path) -> Finding:
    if device.problem:
        return Finding(
            device.name,
            State.WARNING,
            f"{describe(device)}; cannot be used: {device.problem}",
            "builds leave it out",
        )
    if holder := _holder(device, leases):
        return Finding(device.name, State.OK, f"{describe(device)}; in use by {holder}")
    if users := vendor_of(device.platform).users(device):
        named = ", ".join(map(str, users))
        return Finding(
            device.name,
            State.WARNING,
            f"{describe(device)}; processes that kabuild did not start compute on it: {named}",
            "nothing can be measured beside them",
        )
    return Finding(device.name, State.OK, f"{describe(device)}; free")


def _holder(device: Device, leases: Path) -> str:
    """Which process judges on it now; empty where none does."""
    if not leases.is_dir():
        return ""
    files = FileLeases(leases)
    if files.acquire(device.lease):
        files.release(device.lease)
        return ""
    return files.holder(device.lease)


def _hip() -> Iterator[Finding]:
    library = find_hip()
    if library is None:
        yield Finding("HIP runtime", State.OPTIONAL, "none (AMD's libamdhip64)")
        return
    try:
        runtime = ask(library)
    except OSError as error:
        yield Finding("HIP runtime", State.WARNING, f"{library.path} cannot be loaded: {error}")
        return
    sees = f"sees {runtime.devices} devices" if runtime.devices else runtime.problem
    yield Finding("HIP runtime", State.OK, f"{runtime.version} ({library.path}): {sees}")
