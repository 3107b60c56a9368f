"""The counts of a call, kernel by kernel, from which a time is modelled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

KINDS = ("f64", "f32", "f16", "special", "conversion", "integer")
"""Kinds of arithmetic: floating-point operations by type, divisions and functions like ``exp``,
conversions from and to floating point, and integer operations except those on addresses."""
_LANES = 32
_SPACES = ("global", "shared")
_OPERATIONS = ("load", "store", "atomic")
_OF_LAUNCH = (
    *("grid", "block", "count", "shared_bytes", "exchanges"),
    *("sectors_read", "sectors_written", "sectors_read_by_blocks"),
    *("loads_most_of_thread", "operations_most_of_thread"),
)


def sums(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call of ``analysis.json``, with sums over the launches of each kernel; warps of 32."""
    names = list(dict.fromkeys(launch["kernel"] for launch in call["launches"]))
    return {
        "config": call["config"],
        "of": call["of"],
        "flops": call["flops"],
        "launches": [_kernel(call, name) for name in names],
    }


def _kernel(call: Mapping[str, Any], name: str) -> dict[str, Any]:
    own = {
        what: [one for one in call[what] if one["kernel"] == name]
        for what in ("launches", "accesses", "branches", "arithmetic", "barriers")
    }
    accesses: Counter[str] = Counter()
    for access in own["accesses"]:
        for what in ("requests", "sectors", "passes", "turns"):
            key = f"{access['space']} {access['operation']} {what}"
            accesses[key] += access["warp32"].get(what, 0)
    arithmetic: Counter[str] = Counter()
    for one in own["arithmetic"]:
        arithmetic[one["kind"]] += one["operations"]
    return {
        "kernel": name,
        "shapes": [{key: launch[key] for key in _OF_LAUNCH} for launch in own["launches"]],
        "accesses": dict(accesses),
        "arithmetic": dict(arithmetic),
        "branches": sum(one["warp32"]["requests"] for one in own["branches"]),
        "divergent": sum(one["warp32"]["divergent"] for one in own["branches"]),
        "barriers": sum(one["passed"] for one in own["barriers"]),
    }


def amounts(kernel: Mapping[str, Any], processors: int) -> dict[str, float]:
    """The work in the launches of one kernel of ``sums``, on a GPU with ``processors`` processors.

    ``launch`` counts launches. All others are per working processor, of which there are at most as
    many as blocks: ``sectors`` that requests move, ``shared`` turns of the banks, ``atomics`` one
    after the other, operations by ``KINDS``, and ``branches`` of warps.
    """
    shapes, accesses = kernel["shapes"], kernel["accesses"]
    working = min(processors, max(math.prod(shape["grid"]) for shape in shapes)) or 1

    def asked(what: str, *spaces: str) -> float:
        keys = (f"{space} {operation} {what}" for space in spaces for operation in _OPERATIONS)
        return float(sum(accesses.get(key, 0) for key in keys)) / working

    atomics = sum(accesses.get(f"{space} atomic turns", 0) for space in _SPACES)
    return {
        "launch": float(sum(shape["count"] for shape in shapes)),
        "sectors": asked("sectors", "global"),
        "shared": asked("passes", "shared"),
        "atomics": atomics / working,
        **{kind: kernel["arithmetic"].get(kind, 0) / working for kind in KINDS},
        "branches": kernel["branches"] / working,
    }


def operations_of_warps(found: Mapping[str, float], *kinds: str) -> float:
    """Warp instructions for the operations of some kinds of ``amounts``."""
    return sum(found[kind] for kind in kinds) / _LANES
