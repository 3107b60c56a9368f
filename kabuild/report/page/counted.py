"""The memory accesses of kernels, as the gate that counts them reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.model.figure import number, positive

_WIDTH = "warp32"
_FIGURES = ("bytes_read", "bytes_written", "bytes_moved", "flops")


@dataclass(frozen=True)
class Traffic:
    """One counted call.

    Attributes:
        read, written: bytes that have to move from memory, and to it.
        moved: bytes that requests move.
        flops: operations that the task declares; 0 for none.
        modelled: by architecture, nanoseconds that are made of the counts.
    """

    config: str
    read: int
    written: int
    moved: int
    flops: int
    modelled: Mapping[str, float] = field(hash=False, default_factory=dict)

    @property
    def least(self) -> int:
        """Bytes that have to move."""
        return self.read + self.written

    @property
    def times(self) -> float | None:
        """How often each byte moves; None if no byte has to."""
        return self.moved / self.least if self.least else None

    @property
    def intensity(self) -> float | None:
        """Operations for each byte that has to move; None if either is not known."""
        return self.flops / self.least if self.least and self.flops else None


@dataclass(frozen=True)
class Finding:
    """An access that stands out: where, what wastes how much of its kind, and what would help."""

    place: str
    text: str
    config: str
    share: float


@dataclass(frozen=True)
class Counted:
    """All calls, and what stands out for warps of 32 lanes, the worst first."""

    calls: tuple[Traffic, ...]
    findings: tuple[Finding, ...]

    @property
    def arches(self) -> tuple[str, ...]:
        """The architectures on which the time of some call is modelled."""
        return tuple(sorted({arch for call in self.calls for arch in call.modelled}))


def counted(told: Mapping[str, Any]) -> Counted | None:
    """Of the verdict of a gate that counts; None for another one."""
    findings = told.get("findings")
    if not isinstance(findings, Mapping) or not isinstance(findings.get(_WIDTH), list):
        return None
    cases = told.get("cases")
    calls = [_traffic(case) for case in cases] if isinstance(cases, list) else []
    return Counted(
        calls=tuple(call for call in calls if call),
        findings=tuple(_finding(item) for item in findings[_WIDTH] if isinstance(item, Mapping)),
    )


def _traffic(case: object) -> Traffic | None:
    if not isinstance(case, Mapping):
        return None
    figures = [number(case, name) for name in _FIGURES]
    known = [int(figure) for figure in figures if figure is not None and figure >= 0]
    if len(known) < len(_FIGURES):
        return None
    read, written, moved, flops = known
    modelled = _modelled(case.get("modelled_ns"))
    return Traffic(str(case.get("config", "")), read, written, moved, flops, modelled)


def _modelled(told: object) -> Mapping[str, float]:
    if not isinstance(told, Mapping):
        return {}
    figures = {str(arch): positive(told, arch) for arch in sorted(map(str, told))}
    return {arch: figure for arch, figure in figures.items() if figure is not None}


def _finding(item: Mapping[str, Any]) -> Finding:
    file, line = str(item.get("file", "")), item.get("line")
    return Finding(
        place=f"{file}:{line}" if file else "elsewhere",
        text=str(item.get("text", "")),
        config=str(item.get("config", "")),
        share=number(item, "share") or 0.0,
    )
