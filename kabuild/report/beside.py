"""Evaluations beside one another: what they are called, and whether they may be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kabuild.report.evaluation import Evaluation

_DECISIVE = ("name", "arch", "device")
_TOLD = {"name": "platform"}
_ASKED = ("policy", "salt")
Platform = Mapping[str, str]
"""Name and properties, as an evaluation has them."""


def by_agent(evaluation: Evaluation, source: str) -> Evaluation:
    """What a file holds, called by its agent where it names one; ``source`` is as it was given."""
    agent = evaluation.request.get("agent")
    name = evaluation.name if agent is None else str(agent).rpartition(":")[2] or "solution"
    return replace(evaluation, name=name, source=source)


def named_apart(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The same with names that differ.

    All are called by their agent. Where they were judged on several machines, that is said of
    all; where two are still alike, of those where they come from, and at last a number.
    """
    names = [item.name for item in evaluations]
    machines = _machines(evaluations)
    if len(set(machines)) > 1:
        names = [f"{name} on {where}" for name, where in zip(names, machines, strict=True)]
    sources = [item.source for item in evaluations]
    names = _where_alike(names, lambda index: f" ({sources[index]})" if sources[index] else "")
    names = _numbered(names)
    return [replace(item, name=name) for item, name in zip(evaluations, names, strict=True)]


def _machines(evaluations: Sequence[Evaluation]) -> list[str]:
    """Short names of the machines: the device's, or the platform's where that is enough."""
    short = [_short(item) for item in evaluations]
    meant = {(name, item.machine) for name, item in zip(short, evaluations, strict=True)}
    twice = Counter(name for name, _ in meant)
    return [
        item.machine if twice[name] > 1 else name
        for name, item in zip(short, evaluations, strict=True)
    ]


def _short(evaluation: Evaluation) -> str:
    platform = evaluation.platform
    name, device, arch = (platform.get(key, "") for key in ("name", "device", "arch"))
    if name == "cpu":
        return name
    return device or ":".join(part for part in (name, arch) if part)


def _where_alike(names: Sequence[str], more: Callable[[int], str]) -> list[str]:
    counts = Counter(names)
    return [f"{name}{more(i)}" if counts[name] > 1 else name for i, name in enumerate(names)]


def _numbered(names: Sequence[str]) -> list[str]:
    """With a number behind each that occurs again; no number makes a name that there is."""
    taken = set(names)
    seen: set[str] = set()
    found = []
    for name in names:
        number, unique = 1, name
        while unique in seen or (number > 1 and unique in taken):
            number += 1
            unique = f"{name} ({number})"
        seen.add(unique)
        found.append(unique)
    return found


def told_apart(one: Platform, other: Platform) -> list[str]:
    """What makes two platforms so different that no speedup of one is like one of the other.

    A speedup is over the task's baseline on the same machine, and each machine has its own:
    ``["device: AMD EPYC and NVIDIA H200"]``. Empty where they may be compared.
    """
    return _differing(one, other, _DECISIVE)


def remarks(one: Evaluation, other: Evaluation) -> list[str]:
    """What else differs: no reason to refuse, and something to know of the figures."""
    properties = sorted((one.platform.keys() | other.platform.keys()) - {*_DECISIVE})
    return [
        *_differing(one.platform, other.platform, properties),
        *_differing(one.request, other.request, _ASKED),
        *_differing({"kabuild": one.kabuild}, {"kabuild": other.kabuild}, ("kabuild",)),
    ]


def _differing(
    one: Mapping[str, object], other: Mapping[str, object], names: Sequence[str]
) -> list[str]:
    pairs = {name: (one.get(name), other.get(name)) for name in names}
    return [
        f"{_TOLD.get(name, name)}: {_text(first)} and {_text(second)}"
        for name, (first, second) in pairs.items()
        if first != second
    ]


def _text(value: object) -> str:
    return "unknown" if value is None else str(value)
