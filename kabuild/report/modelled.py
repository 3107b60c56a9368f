"""The modelled time of a counted call, for people: what it is made of, and what is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kabuild.report.times import nanoseconds

NOT_MEASURED = "made of counts and published peaks; it is no measurement and never a score"

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


def modelled_lines(call: Mapping[str, Any], arch: str) -> Iterator[str]:
    """Of a call of ``analysis.json`` on one architecture. Raises LookupError, TypeError."""
    times = call.get("modelled", {})
    known = times.get(arch)
    if known is None:
        yield f"no modelled time on {arch}: {_why(call, times)}"
        return
    yield (
        f"modelled on {arch} ({known['gpu']}): {nanoseconds(known['ns'])} for {call['config']}, "
        f"{NOT_MEASURED}"
    )
    parts = sorted(known["parts"].items(), key=lambda part: -part[1])
    yield f"  {', '.join(f'{_name(part)} {nanoseconds(ns)}' for part, ns in parts)}"
    yield f"  not in it, as no peak is published: {', '.join(map(_name, known['left_out']))}"
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


def _why(call: Mapping[str, Any], times: Mapping[str, Any]) -> str:
    if not call["whole"]:
        return "the counts are incomplete"
    if not times:
        return "only HIP kernels have one"
    return f"its platform's peaks.toml does not have it; known: {', '.join(sorted(times))}"


def _name(part: str) -> str:
    return _PARTS.get(part, part)
