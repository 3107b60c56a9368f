"""Several evaluations: their names, and whether they may be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kabuild.report.evaluation import Evaluation

_DECISIVE = ("name", "arch", "device")
_TOLD = {"name": "platform"}
_ASKED = ("policy", "salt")
Platform = Mapping[str, str]
"""Name and properties of a platform."""


def by_agent(evaluation: Evaluation, source: str) -> Evaluation:
    """A file's evaluation, named after its agent if it has one; ``source`` is as given."""
    agent = evaluation.request.get("agent")
    name = evaluation.name if agent is None else str(agent).rpartition(":")[2] or "solution"
    return replace(evaluation, name=name, source=source)


def named_apart(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations with distinct names.

    All are named after their agents. If they were judged on several machines, all get the machine's
    name; those that are still equal get their source, and finally a number.
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
    """Short names of the machines: the device's, or the platform's if that is enough."""
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
    """With numbers after repeated names; no number creates an existing name."""
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
    """Why speedups on different platforms cannot be compared.

    A speedup is over the task's baseline on the same machine, and each machine has its own:
    ``["device: AMD EPYC and NVIDIA H200"]``. Empty if they can be compared.
    """
    return _differing(one, other, _DECISIVE)


def remarks(one: Evaluation, other: Evaluation) -> list[str]:
    """Other differences, which readers of the figures should know."""
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
