"""A table of the resources of each kernel, as the compile gate reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.model.figure import number, positive
from kabuild.report.page.symbols import readable

Kernel = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One figure of kernels. ``split`` is its name where vector and scalar registers differ."""

    field: str
    title: str
    split: str = ""


_COLUMNS = (
    Column("threads", "threads"),
    Column("registers", "registers", "VGPRs"),
    Column("scalar_registers", "SGPRs"),
    Column("accumulation_registers", "AGPRs"),
    Column("shared_bytes", "shared", "LDS"),
    Column("spills", "spills"),
    Column("stack_bytes", "stack"),
    Column("code_bytes", "code"),
)
_ONE_KIND = (
    "Registers and stack of one thread, shared memory of one block; spills are bytes that are "
    "stored and loaded. Occupancy: warps that a multiprocessor holds at once, and what it has no "
    "more of."
)
_SPLIT = (
    "Vector registers and stack of one thread, scalar registers of one wave, LDS (shared memory) "
    "of one block; spills are registers. Occupancy: waves that a SIMD unit holds at once, and "
    "what it has no more of."
)


@dataclass(frozen=True)
class Figure:
    """A cell: what it shows, by what it is sorted, and whether it costs speed."""

    text: str
    value: float
    bad: bool = False


@dataclass(frozen=True)
class Resources:
    """The table: ``rows`` are a kernel's name and its figures, in the order of ``titles``.

    ``note`` says in which units.
    """

    arch: str
    note: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Figure, ...]], ...]


def resources(compiled: Mapping[str, Any]) -> Resources | None:
    """The kernels of the verdict of a compile gate; None if it tells of none."""
    told = compiled.get("kernels")
    told = told if isinstance(told, list) else []
    kernels = [item for item in told if isinstance(item, Mapping)]
    if not kernels:
        return None
    split = any("scalar_registers" in kernel for kernel in kernels)
    columns = [column for column in _COLUMNS if any(column.field in k for k in kernels)]
    titles = [column.split if split and column.split else column.title for column in columns]
    return Resources(
        arch=", ".join(dict.fromkeys(str(k["arch"]) for k in kernels if "arch" in k)),
        note=_SPLIT if split else _ONE_KIND,
        titles=(*titles, "occupancy"),
        rows=tuple(
            (
                readable(str(kernel.get("name", ""))),
                (
                    *(_figure(column.field, kernel, split=split) for column in columns),
                    _held(kernel),
                ),
            )
            for kernel in kernels
        ),
    )


def _figure(field: str, kernel: Kernel, *, split: bool) -> Figure:
    known = number(kernel, field)
    if known is None:
        return _UNKNOWN
    value = int(known)
    in_bytes = field.endswith("_bytes") or (field == "spills" and not split)
    return Figure(_size(value) if in_bytes else str(value), value, field == "spills" and value > 0)


def _held(kernel: Kernel) -> Figure:
    """How many waves a processor holds at once, of how many, and what it has no more of."""
    held, most = number(kernel, "occupancy"), positive(kernel, "occupancy_most")
    if held is None or most is None:
        return _UNKNOWN
    limit = kernel.get("occupancy_limit")
    return Figure(f"{held:.0f} of {most:.0f}" + (f" ({limit})" if limit else ""), held / most)


def _size(count: int) -> str:
    if count == 0:
        return "0"
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB".replace(".0 ", " ")


_UNKNOWN = Figure("-", -1.0)
