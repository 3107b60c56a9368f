"""The part of ``kabuild doctor`` about accelerators: which exist, and who uses them."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

from kabuild.base.errors import LoadError
from kabuild.cli.finding import Finding, State
from kabuild.loading.platform_index import PlatformIndex
from kabuild.model.device import Device, Devices
from kabuild.model.platform import CPU, PlatformSpec
from kabuild.platform import Driver, Remark
from kabuild.scheduler import FileLeases
from kabuild.survey import driver_of, probe

_UNITS = {"driver": "driver {}", "runtime": "runtime {}", "power": "at most {}"}
_ORDER = ("memory", "driver", "runtime", "clocks", "power")


def find_devices(platforms: PlatformIndex, leases: Path) -> Iterator[Finding]:
    """The devices of all platforms; ``leases`` is the directory of leases."""
    held = FileLeases(leases)
    for name in platforms.names():
        if name != CPU:
            try:
                yield from _of_platform(platforms, platforms.spec(name), held)
            except LoadError as error:
                yield Finding(f"platform {name}", State.PROBLEM, str(error))


def _of_platform(
    platforms: PlatformIndex, spec: PlatformSpec, held: FileLeases
) -> Iterator[Finding]:
    there, driver = probe(platforms, spec.name), driver_of(platforms, spec.name)
    yield _count(there, spec)
    if driver:
        yield from (_device(device, driver, held) for device in there.found)
    if there.found:
        yield from judging_pytorch(spec, _version("torch"))
    if spec.untried:
        untried = State.WARNING if there.found else State.OPTIONAL
        yield Finding(f"platform {spec.name}", untried, spec.untried)
    yield from map(_remark, driver.remarks() if driver else ())


def judging_pytorch(spec: PlatformSpec, version: str) -> Iterator[Finding]:
    """Whether this PyTorch can compute on a platform's devices, for the judge.

    A missing PyTorch is another finding.
    """
    if version and not re.search(spec.pytorch, version):
        build = spec.pytorch_build or spec.name
        found = f"{version}: not built for {build}, so nothing can be judged on the devices"
        yield Finding("PyTorch", State.WARNING, found, f"install a build of it for {build}")


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


def _count(there: Devices, spec: PlatformSpec) -> Finding:
    """How many devices a platform has, and what works without any."""
    if not there.found:
        example = f"--platform={spec.name}:{spec.example}"
        advice = f"kernels compile without one: {example}" if spec.example else ""
        return Finding(spec.device, State.OPTIONAL, f"none: {there.absent}", advice)
    usable = sum(not device.problem for device in there.found)
    found = f"{len(there.found)}, {usable} to judge on with --platform={there.platform}"
    return Finding(spec.device, State.OK if usable else State.WARNING, found)


def _device(device: Device, driver: Driver, leases: FileLeases) -> Finding:
    if device.problem:
        return Finding(
            device.name,
            State.WARNING,
            f"{describe(device)}; cannot be used: {device.problem}",
            "builds skip it",
        )
    if leases.is_held(device.lease):
        holder = leases.holder(device.lease)
        return Finding(device.name, State.OK, f"{describe(device)}; in use by {holder}")
    if users := driver.users(device):
        named = ", ".join(map(str, users))
        return Finding(
            device.name,
            State.WARNING,
            f"{describe(device)}; processes that kabuild did not start compute on it: {named}",
            "end them: times measured meanwhile are meaningless",
        )
    return Finding(device.name, State.OK, f"{describe(device)}; free")


def _remark(remark: Remark) -> Finding:
    states = {True: State.OK, False: State.WARNING, None: State.OPTIONAL}
    return Finding(remark.name, states[remark.good], remark.found)
