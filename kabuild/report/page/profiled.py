"""What a device's counters say of kernels, as the gate that has them read reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.model.figure import number

_TIME = "profiled_ns"


@dataclass(frozen=True)
class Remark:
    """Something about a kernel: what bounds it, or what would help.

    ``share`` is the kernel's of the time of its call.
    """

    kernel: str
    kind: str
    text: str
    config: str
    share: float


@dataclass(frozen=True)
class Profiled:
    """All calls under a profiler: by config, their nanoseconds there; and what was remarked."""

    calls: tuple[tuple[str, float], ...]
    remarks: tuple[Remark, ...]


def profiled(told: Mapping[str, Any]) -> Profiled | None:
    """Of the verdict of a gate with counters; None for another one."""
    cases, findings = told.get("cases"), told.get("findings")
    if not isinstance(cases, list) or not isinstance(findings, list):
        return None
    times = [(case, number(case, _TIME)) for case in cases if isinstance(case, Mapping)]
    calls = tuple((str(case.get("config", "")), time) for case, time in times if time is not None)
    if not calls:
        return None
    return Profiled(calls, tuple(_remark(item) for item in findings if isinstance(item, Mapping)))


def _remark(item: Mapping[str, Any]) -> Remark:
    kernel, kind, text, config = (
        str(item.get(name, "")) for name in ("kernel", "kind", "text", "config")
    )
    return Remark(kernel, kind, text, config, number(item, "share") or 0.0)
