"""The output of ``analyze`` on a GPU: what its counters say of each kernel, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kabuild.report.page.symbols import readable
from kabuild.report.table import text_table
from kabuild.report.times import nanoseconds

_HEAD = ("kernel", "launches", "time", "share", "blocks", "threads", "registers", "busy")
_NUMBERS = frozenset({1, 2, 3, 4, 5, 6})
_MOST_KERNELS = 10
_MOST_NAME = 40
_BUSY = {
    "compute_percent": "arithmetic",
    "tensor_percent": "tensor cores",
    "l1_percent": "L1",
    "l2_percent": "L2",
    "memory_percent": "memory",
    "occupancy_percent": "warps",
}
"""Figures that are a share of the most that is possible, by how they are called."""

_SELDOM = frozenset({"tensor_percent"})
"""Those that are shown only of kernels that use them."""


def render_counters(label: str, told: Mapping[str, Any]) -> str:
    """One task for people: the call that takes longest, and its findings.

    ``told`` is ``counters.json``. Raises LookupError, TypeError or ValueError for one of another
    form.
    """
    calls = told["calls"]
    number = _counted(len(calls), "call")
    by = f"{told['profiler']}, whose times are no measurement of the judge's"
    lines = [f"{label}: counted in {number} by {by}"]
    if not calls:
        return lines[0]
    longest = max(calls, key=_time)
    lines += ["", *_call(longest)]
    if len(calls) > 1:
        others = _counted(len(calls) - 1, "other config")
        lines.append(f"  of all configs this one takes longest; --json also has {others}")
    found = [item for item in told["findings"] if item["config"] == longest["config"]]
    lines += [""] * bool(found)
    for place, finding in enumerate(found, 1):
        kernel = _short(finding["kernel"])
        share = f"{finding['share']:.0%} of the time"
        lines.append(f"  {place}. {kernel} ({share}): {finding['text']} [{finding['kind']}]")
    return "\n".join(lines)


def _call(call: Mapping[str, Any]) -> Iterator[str]:
    together = _time(call)
    yield f"  config {call['config']}, {nanoseconds(together)} under the profiler"
    if call["fault"]:
        yield f"  incomplete: the call failed: {call['fault']}"
    elif not call["whole"]:
        yield f"  incomplete: only the first {len(call['launches'])} launches were counted"
    if not call["launches"]:
        yield "  no kernel was launched"
        return
    kernels: dict[str, list[Mapping[str, Any]]] = {}
    for launch in call["launches"]:
        kernels.setdefault(launch["kernel"], []).append(launch)
    slowest = sorted(kernels.items(), key=lambda item: -_sum(item[1]))
    rows = [_HEAD, *(_kernel(name, own, together) for name, own in slowest[:_MOST_KERNELS])]
    yield ""
    yield from (f"  {line}" for line in text_table(rows, right=_NUMBERS).splitlines())
    if len(slowest) > _MOST_KERNELS:
        yield f"  {_counted(len(slowest) - _MOST_KERNELS, 'faster kernel')} in --json"
    yield from _traffic(call["launches"])


def _kernel(name: str, own: Sequence[Mapping[str, Any]], together: float) -> tuple[str, ...]:
    longest = max(own, key=lambda launch: launch["figures"].get("time_ns", 0.0))
    figures = longest["figures"]
    busy = [
        f"{said} {figures[one]:.0f}%"
        for one, said in _BUSY.items()
        if one in figures and not (one in _SELDOM and figures[one] < 1)
    ]
    registers = figures.get("registers")
    return (
        _short(name),
        f"{len(own):,}",
        nanoseconds(_sum(own)),
        f"{_sum(own) / together:.0%}" if together else "-",
        "x".join(map(str, _trimmed(longest["grid"]))),
        "x".join(map(str, _trimmed(longest["block"]))),
        "-" if registers is None else f"{registers:.0f}",
        ", ".join(busy) or "-",
    )


def _traffic(launches: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The bytes that all launches moved, if all were counted."""
    figures = [launch["figures"] for launch in launches]
    names = ("memory_read_bytes", "memory_written_bytes")
    if all(name in one for one in figures for name in names):
        read, written = (sum(one[name] for one in figures) for name in names)
        yield f"  moves {read:,.0f} bytes from memory and {written:,.0f} to it"


def _time(call: Mapping[str, Any]) -> float:
    return _sum(call["launches"])


def _sum(launches: Iterable[Mapping[str, Any]]) -> float:
    return float(sum(launch["figures"].get("time_ns", 0.0) for launch in launches))


def _trimmed(sizes: Sequence[int]) -> list[int]:
    """The sizes of a grid or a block as people write them: without ones at the end."""
    found = list(sizes) or [0]
    while len(found) > 1 and found[-1] == 1:
        found.pop()
    return found


def _short(symbol: str) -> str:
    name = readable(symbol)
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 3]}..."


def _counted(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else f'{one}s'}"
