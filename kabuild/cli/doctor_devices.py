"""The part of ``kabuild doctor`` about accelerators: which there are, and who has them."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

from kabuild.cli.finding import Finding, State
from kabuild.execution.devices import vendor_of
from kabuild.execution.devices.choice import EXAMPLES
from kabuild.execution.devices.hip import ask, find_hip
from kabuild.execution.devices.patience import answer
from kabuild.model.device import Device, Devices
from kabuild.scheduler import FileLeases

_MAKERS = {"cuda": "NVIDIA GPU", "rocm": "AMD GPU"}
_BUILDS = {"cuda": ("CUDA", r"\+cu\d|^[^+]*$"), "rocm": ("ROCm", r"\+rocm")}
_UNITS = {"driver": "driver {}", "runtime": "runtime {}", "power": "at most {}"}
UNTRIED = (
    "kernels compile for AMD GPUs; runner and probes were tried up to 'no device', and nothing of "
    "kabuild has run on one yet"
)
"""What nobody has seen work on hardware."""

_ORDER = ("memory", "driver", "runtime", "clocks", "power")


def find_devices(leases: Path) -> Iterator[Finding]:
    """The devices of all platforms; ``leases`` is where builds hold theirs."""
    held = FileLeases(leases)
    for platform in _MAKERS:
        there = vendor_of(platform).probe()
        yield _count(there)
        for device in there.found:
            yield _device(device, held)
        if there.found:
            yield from judging_pytorch(platform, _version("torch"))
        if platform == "rocm":
            untried = State.WARNING if there.found else State.OPTIONAL
            yield Finding("platform rocm", untried, UNTRIED)
    yield from _hip()


def judging_pytorch(platform: str, version: str) -> Iterator[Finding]:
    """Whether the judge can compute on a platform's devices with this PyTorch.

    PyPI's builds are CUDA's and name nothing; where there is no PyTorch, that is another finding.
    """
    name, builds = _BUILDS[platform]
    if version and not re.search(builds, version):
        found = f"{version}: not built for {name}, so nothing can be judged on the devices"
        yield Finding("PyTorch", State.WARNING, found, f"install a build of it for {name}")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def describe(device: Device) -> str:
    """One device in one line."""
    properties = dict(device.properties)
    parts = [
        _UNITS.get(name, "{}").format(properties[name]) for name in _ORDER if properties.get(name)
    ]
    return ", ".join((device.model or "unknown", device.arch or "unknown architecture", *parts))


def _count(there: Devices) -> Finding:
    """How many devices of a platform there are, and what works without."""
    maker = _MAKERS[there.platform]
    if not there.found:
        advice = f"kernels compile without one: --platform={EXAMPLES[there.platform]}"
        return Finding(maker, State.OPTIONAL, f"none: {there.absent}", advice)
    usable = sum(not device.problem for device in there.found)
    found = f"{len(there.found)}, {usable} to judge on with --platform={there.platform}"
    return Finding(maker, State.OK if usable else State.WARNING, found)


def _device(device: Device, leases: FileLeases) -> Finding:
    if device.problem:
        return Finding(
            device.name,
            State.WARNING,
            f"{describe(device)}; cannot be used: {device.problem}",
            "builds leave it out",
        )
    if leases.is_held(device.lease):
        holder = leases.holder(device.lease)
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


def _hip() -> Iterator[Finding]:
    library = find_hip()
    if library is None:
        yield Finding("HIP runtime", State.OPTIONAL, "none (AMD's libamdhip64)")
        return
    try:
        runtime = answer(lambda: ask(library))
    except OSError as error:
        yield Finding("HIP runtime", State.WARNING, f"{library.path} cannot be used: {error}")
        return
    sees = f"sees {runtime.devices} devices" if runtime.devices else runtime.problem
    yield Finding("HIP runtime", State.OK, f"{runtime.version} ({library.path}): {sees}")
