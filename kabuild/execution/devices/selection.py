"""Which devices a build uses: requested, working, and alike."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import takewhile

from kabuild.base.errors import InfraError, Reason, UsageError
from kabuild.model.device import Device, Devices
from kabuild.model.platform import Platform, PlatformSpec


def choose(
    spec: PlatformSpec,
    asked: Platform,
    there: Devices,
    only: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
) -> tuple[Platform, Devices]:
    """The platform with its devices' properties, and the devices that a build may use.

    ``spec`` is what the platform declares, ``there`` are all devices of the machine; ``only`` are
    the numbers of ``--devices``, or else the vendor's own variable in ``env``. One build uses equal
    devices: those like the first of the right architecture. With an architecture but no device,
        everything that needs no device still works; ``Devices.absent`` says why the rest cannot.

    Raises InfraError(NO_DEVICE) if no device tells the architecture, or if a device of
    ``--devices`` cannot be used; UsageError(BAD_FLAG) if it does not exist or differs from the
    first.
    """
    wish = _wish(spec, os.environ if env is None else env)
    allowed = _numbered(there, only) if only else _visible(there, wish)
    working = [device for device in allowed if not device.problem]
    notes = _refusals(allowed)
    if only and notes:
        raise InfraError(Reason.NO_DEVICE, notes[0])
    arch = asked.get("arch")
    reported = spec.architectures.get(arch, arch)
    matching = [device for device in working if not arch or device.arch == reported]
    if not matching:
        absent = _absence(asked, there, working, notes, wish)
        if arch:
            return asked, Devices(asked.name, absent=absent)
        named = f"--platform={asked.name}:{spec.example or 'ARCH'}"
        hint = f"to cross-compile, pass {named} to 'kabuild build'; judging needs a device"
        raise InfraError(Reason.NO_DEVICE, absent, hint=hint)
    first = matching[0]
    alike = tuple(device for device in matching if _traits(device) == _traits(first))
    others = working if only else matching
    differing = [_difference(first, device) for device in others if device not in alike]
    if only and differing:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--devices: {differing[0]}",
            hint="a build needs equal devices: run one build for each kind",
        )
    notes += [f"{text}: skipped" for text in differing]
    platform = Platform(asked.name, tuple((_traits(first) | dict(asked.properties)).items()))
    return platform, Devices(asked.name, alike, notes=tuple(notes))


def _numbered(there: Devices, numbers: Sequence[int]) -> list[Device]:
    """The devices of ``--devices``."""
    if not there.found:
        raise InfraError(Reason.NO_DEVICE, _no_device(there.platform, there.absent))
    by_index = {device.index: device for device in there.found}
    for index in numbers:
        if index not in by_index:
            known = ", ".join(f"{d.name} ({d.model or d.arch})" for d in there.found)
            raise UsageError(
                Reason.BAD_FLAG,
                f"--devices: no device {there.platform}:{index}",
                hint=f"this machine has {known}",
            )
    return [by_index[index] for index in numbers]


def _wish(spec: PlatformSpec, env: Mapping[str, str]) -> str:
    """The vendor's variable as set, such as ``GPUS=0``; empty if unset."""
    return next((f"{name}={env[name]}" for name in spec.visible if name in env), "")


def _visible(there: Devices, wish: str) -> list[Device]:
    """The devices in the vendor's variable, up to the first word that names none."""
    _, given, words = wish.partition("=")
    if not given:
        return list(there.found)
    named = (
        [device for device in there.found if _is_called(device, word.strip())]
        for word in words.split(",")
    )
    visible = [device for devices in takewhile(bool, named) for device in devices]
    return [device for device in there.found if device in visible]


def _is_called(device: Device, name: str) -> bool:
    """Whether a word of the vendor's variable names it: by number, or by a prefix of its UUID."""
    if name.isdecimal():
        return device.index == int(name)
    return len(name) > len("GPU-") and device.uuid.startswith(name)


def _absence(
    asked: Platform, there: Devices, working: Sequence[Device], notes: Sequence[str], wish: str
) -> str:
    """Why the requested platform has no device."""
    if working:
        why = ", ".join(f"{device.name} is {device.arch}" for device in working)
    else:
        why = "; ".join(notes) or there.absent or f"{wish} hides all"
    return _no_device(str(asked), why)


def _no_device(platform: str, why: str) -> str:
    return f"no {platform} device on this machine: {why}"


def _refusals(devices: Sequence[Device]) -> list[str]:
    """Which devices cannot be used, and why; a common reason is given once."""
    names: dict[str, list[str]] = {}
    for device in devices:
        if device.problem:
            names.setdefault(device.problem, []).append(device.name)
    return [f"{', '.join(those)} cannot be used: {why}" for why, those in names.items()]


def _traits(device: Device) -> dict[str, str]:
    """The properties that devices of one build must share."""
    return {**dict(device.properties), "arch": device.arch}


def _difference(first: Device, other: Device) -> str:
    theirs, ours = _traits(other), _traits(first)
    names = sorted(theirs.keys() | ours.keys())
    name = next(name for name in names if theirs.get(name) != ours.get(name))
    return (
        f"{other.name} differs from {first.name} in {name} "
        f"({theirs.get(name, 'unknown')}, not {ours.get(name, 'unknown')})"
    )
