"""Whether the speedups of two evaluations may be compared at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kabuild.report.evaluation import Evaluation

_DECISIVE = ("name", "arch", "device")
_TOLD = {"name": "platform"}
_ASKED = ("policy", "salt")

Platform = Mapping[str, str]
"""Name and properties, as an evaluation has them."""


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
