"""The output of ``analyze``: memory accesses by line of source, the most wasteful ones, and the
modelled time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kabuild.report.page.symbols import readable
from kabuild.report.table import text_table
from kabuild.report.times import nanoseconds

NOT_MEASURED = "made of counts and published peaks; it is no measurement and never a score"

_MOST_ROWS = 20
_MOST_KERNELS = 5
_HEAD = ("line", "kernel", "access", "memory", "bytes", "requests", "lanes", "counted")
_NUMBERS = frozenset({4, 5, 6})
_MOST_NAME = 32
_MANY_LOADS, _UNEVEN = 16, 4
"""The fewest loads of one thread, and the lowest multiple of the mean, that are worth a line."""
_SECTOR = 32
"""Bytes of global memory that move at once."""

_PARTS = {
    "launch": "launches (assumed)",
    "sectors": "L1",
    "shared": "shared memory",
    "special": "special functions",
    "conversion": "conversions",
    "integer": "integers",
    "atomics": "atomic operations",
    "exchanges": "wave operations",
}


def render_analysis(
    label: str,
    analysis: Mapping[str, Any],
    warp: int,
    *,
    occupancy: Mapping[str, Any] | None = None,
    arch: str = "",
) -> str:
    """One task for people, for warps of 32 or 64 lanes.

    ``occupancy`` and the modelled time on ``arch`` are what ``--arch`` adds.
    Raises LookupError, TypeError or ValueError for an analysis of another form.
    """
    lines = [
        f"{label}: counted in {_counted(len(analysis['calls']), 'call')} on the CPU, not timed"
    ]
    if analysis["calls"]:
        lines += ["", *_call(analysis["calls"][0], warp)]
        others = len(analysis["calls"]) - 1
        if others:
            lines.append(f"  --json also has {_counted(others, 'other config')}")
        if arch:
            lines += ["", *(f"  {line}" for line in modelled_lines(analysis["calls"][0], arch))]
    if occupancy:
        lines += ["", *_occupancy(occupancy)]
    lines += ["", *(f"  {line}" for line in _findings(analysis, warp))]
    return "\n".join(lines)


def modelled_lines(call: Mapping[str, Any], arch: str) -> Iterator[str]:
    """The modelled time of a counted call on one architecture, and what is not in it.

    ``call`` is one of ``analysis.json``. Raises LookupError, TypeError.
    """
    times = call.get("modelled", {})
    known = times.get(arch)
    if known is None:
        yield f"no modelled time on {arch}: {_unmodelled(call, times)}"
        return
    yield (
        f"modelled on {arch} ({known['gpu']}): {nanoseconds(known['ns'])} for {call['config']}, "
        f"{NOT_MEASURED}"
    )
    parts = sorted(known["parts"].items(), key=lambda part: -part[1])
    yield f"  {', '.join(f'{_part(part)} {nanoseconds(ns)}' for part, ns in parts)}"
    yield f"  not in it, as no peak is published: {', '.join(map(_part, known['left_out']))}"
    if known["busy"] < known["processors"]:
        yield (
            f"  only {known['busy']} of {known['processors']} multiprocessors have a block: "
            "kernels with fewer, larger blocks look slower than in larger configs"
        )
    if (cache := known["l2"]) is not None:
        yield (
            f"  L2 of {cache['mib']:g} MiB by estimate: serves {cache['hits']:.0%} of "
            f"{cache['sectors_asked']:,} sectors; memory delivers {cache['bytes_read']:,} bytes "
            f"and takes {cache['bytes_written']:,}"
        )


def _unmodelled(call: Mapping[str, Any], times: Mapping[str, Any]) -> str:
    if not call["whole"]:
        return "the counts are incomplete"
    if not times:
        return "only HIP kernels have one"
    return f"its platform's peaks.toml does not have it; known: {', '.join(sorted(times))}"


def _part(part: str) -> str:
    return _PARTS.get(part, part)


def _call(call: Mapping[str, Any], warp: int) -> list[str]:
    made = f" (reduced from {call['of']})" if call["reduced"] else ""
    lines = [f"  config {call['config']}{made}, warps of {warp}"]
    if not call["whole"]:
        why = (
            f"the call failed: {call['fault']}"
            if call["fault"]
            else "there were too many accesses to count"
        )
        lines.append(f"  incomplete: {why}")
    lines += [f"  {_launch(launch)}" for launch in call["launches"][:_MOST_KERNELS]]
    told = (*_traffic(call), *_arithmetic(call["arithmetic"]), *_uneven(call))
    lines += [f"  {line}" for line in told]
    counted = [access for access in call["accesses"] if f"warp{warp}" in access]
    if len(counted) < len(call["accesses"]):
        lines.append(f"  not counted for warps of {warp}: the kernel ran with waves of 32")
    if not counted:
        return [*lines, "  no access to global or shared memory"]
    shown = sorted(counted, key=lambda access: -access[f"warp{warp}"]["requests"])[:_MOST_ROWS]
    shown.sort(key=lambda access: (access["file"], access["line"], access["column"]))
    rows = [_HEAD, *(_access(access, access[f"warp{warp}"]) for access in shown)]
    lines += ["", *(f"  {line}" for line in text_table(rows, right=_NUMBERS).splitlines())]
    if len(counted) > len(shown):
        lines.append(f"  {len(counted) - len(shown)} more in --json")
    lines += [f"  {line}" for line in _branches(call["branches"], f"warp{warp}")]
    return [*lines, *(f"  {_barrier(barrier)}" for barrier in call["barriers"][:_MOST_KERNELS])]


def _launch(launch: Mapping[str, Any]) -> str:
    grid, block = ("x".join(map(str, launch[name])) for name in ("grid", "block"))
    parts = [f"{launch['kernel'] or 'kernel'}: {_counted(launch['count'], 'launch')}"]
    parts += [f"grid {grid}", *([f"block {block}"] if block else [])]
    if launch["shared_bytes"]:
        parts.append(f"{launch['shared_bytes']} bytes dynamic shared")
    if launch["exchanges"]:
        parts.append(f"{launch['exchanges']:,} wave operations of {launch['wave']} lanes")
    return ", ".join(parts)


def _access(access: Mapping[str, Any], totals: Mapping[str, Any]) -> tuple[str, ...]:
    shared = " shared" if access["space"] == "shared" else ""
    return (
        _line(access),
        _short(access["kernel"]),
        f"{access['operation']}{shared}",
        access["memory"] or "-",
        str(access["width"]),
        f"{totals['requests']:,}",
        f"{totals['lanes'] / totals['requests']:.1f}",
        _cost(access, totals),
    )


def _cost(access: Mapping[str, Any], totals: Mapping[str, Any]) -> str:
    parts = []
    if access["space"] == "shared":
        parts.append(f"{totals['ways']:.1f}-way bank access")
    else:
        needed = f"{totals['efficiency']:.0%} needed"
        parts.append(f"{totals['sectors_per_request']:.1f} sectors per request, {needed}")
    if access["operation"] == "atomic":
        parts.append(f"{totals['turns_per_request']:.1f} lanes at one address")
    return ", ".join(parts)


def _traffic(call: Mapping[str, Any]) -> Iterable[str]:
    """What has to move at least, beside what is asked for and computed."""
    launches = call["launches"]
    read, written = (
        _SECTOR * sum(launch[f"sectors_{done}"] for launch in launches)
        for done in ("read", "written")
    )
    if not read + written:
        return
    asked = _SECTOR * sum(
        access["warp32"]["sectors"] for access in call["accesses"] if access["space"] == "global"
    )
    yield (
        f"moves at least {read:,} bytes from memory and {written:,} to it; "
        f"requests move {asked / (read + written):.1f} times as much"
    )
    by_blocks = [launch["sectors_read_by_blocks"] for launch in launches]
    if read and None not in by_blocks:
        most = max(launch["sectors_most_of_block"] for launch in launches)
        yield (
            f"blocks load these bytes {_SECTOR * sum(by_blocks) / read:.1f} times, if each keeps "
            f"what it has accessed: at most {_SECTOR * most:,} bytes"
        )
    if call["flops"]:
        yield (
            f"computes {call['flops']:,} operations by the task's declaration: "
            f"{call['flops'] / (read + written):.2f} for each of these bytes"
        )


def _arithmetic(arithmetic: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Operations by kind, and the line that has most of the most frequent kind."""
    kinds: Counter[str] = Counter()
    for one in arithmetic:
        kinds[one["kind"]] += one["operations"]
    if not kinds:
        return
    yield f"counted: {', '.join(f'{count:,} {kind}' for kind, count in kinds.most_common())}"


def _uneven(call: Mapping[str, Any]) -> Iterable[str]:
    """Kernels of which one thread loads far more than most: the others wait for it at the end."""
    for launch in call["launches"]:
        most = launch["loads_most_of_thread"] or 0
        made = sum(
            access["warp32"]["lanes"]
            for access in call["accesses"]
            if access["kernel"] == launch["kernel"]
            and access["space"] == "global"
            and access["operation"] != "store"
        )
        threads = launch["count"] * math.prod((*launch["grid"], *launch["block"]))
        if made and most >= _MANY_LOADS and most * threads >= _UNEVEN * made:
            yield (
                f"{_short(launch['kernel'])}: the busiest thread makes {most:,} loads, "
                f"{most * threads / made:.1f} times the mean"
            )


def _branches(branches: Iterable[Mapping[str, Any]], width: str) -> Iterable[str]:
    """Those at which warps part most often."""
    parted = [one for one in branches if width in one and one[width]["divergent"]]
    parted.sort(key=lambda branch: -branch[width]["divergent"])
    for branch in parted[:_MOST_KERNELS]:
        totals = branch[width]
        times = f"{totals['divergent']:,} of {_counted(totals['requests'], 'time')}"
        yield f"{_line(branch)}: branch of {_short(branch['kernel'])}, warps part {times}"


def _barrier(barrier: Mapping[str, Any]) -> str:
    passes = _counted(barrier["passed"], "time")
    return f"{_line(barrier)}: barrier of {_short(barrier['kernel'])}, passed {passes} by blocks"


def _line(item: Mapping[str, Any]) -> str:
    return f"{item['file']}:{item['line']}" if item["file"] else "elsewhere"


def _findings(analysis: Mapping[str, Any], warp: int) -> Iterable[str]:
    found = analysis["findings"][f"warp{warp}"]
    if not found:
        whole = all(call["whole"] for call in analysis["calls"])
        yield f"no wasteful accesses for warps of {warp}{'' if whole else ', in what was counted'}"
    for number, finding in enumerate(found, 1):
        yield f"{number}. {_line(finding)}: {finding['text']} [{finding['config']}]"


def _occupancy(occupancy: Mapping[str, Any]) -> list[str]:
    arch = occupancy["arch"]
    if occupancy["unknown"]:
        return [f"  occupancy on {arch} is unknown: {occupancy['unknown']}"]
    kernels = sorted(occupancy["kernels"], key=lambda kernel: kernel["occupancy"])
    lines = [f"  {arch}, by the compiler's tables ({_counted(len(kernels), 'kernel')}):"]
    for kernel in kernels[:_MOST_KERNELS]:
        blocks = f" in blocks of {kernel['threads']}" if "threads" in kernel else ""
        spills = f", {kernel['spills']} spilled" if kernel["spills"] else ""
        lines.append(
            f"    {_short(kernel['name'])}: {kernel['occupancy']} of {kernel['occupancy_most']} "
            f"waves of {kernel['wave']}, limited by {_limit(kernel)}{blocks}; "
            f"{kernel['registers']} registers, {kernel['shared_bytes']} bytes shared{spills}"
        )
    if len(kernels) > _MOST_KERNELS:
        lines.append(f"    {len(kernels) - _MOST_KERNELS} more in --json, with no fewer waves")
    return lines


def _limit(kernel: Mapping[str, Any]) -> str:
    return str(kernel["occupancy_limit"]).replace("_", " ")


def _short(symbol: str) -> str:
    name = readable(symbol)
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 3]}..."


def _counted(number: int, one: str) -> str:
    plural = f"{one}es" if one.endswith("ch") else f"{one}s"
    return f"{number:,} {one if number == 1 else plural}"
