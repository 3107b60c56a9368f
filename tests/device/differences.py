"""Why a count on the CPU differs from a profiler's, by name.

A row is one of ``analysis.py``. Causes are inferred from which counts of the row are larger: the
usual one is named, and the GPU's code is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CLOSE, UNEXPLAINED = "close", "unexplained"
CAUSES = {
    CLOSE: "within 5 %, of bytes within 20 %",
    "grid": "the kernel asks the device how many blocks to start",
    "merged": "the GPU's compiler keeps values in registers, or moves several at once",
    "split": "the GPU's compiler moves wide values in pieces",
    "idle": "the GPU also counts instructions of warps in which no lane is active",
    "predicated": "short branches are not jumps on the GPU",
    "little": "at most 64 KiB more: code, arguments, and what else a launch reads",
    UNEXPLAINED: "none of these",
}
"""What each means, in the order of the page."""

_NEAR, _NEAR_BYTES = 0.05, 0.20
_LITTLE = 64 << 10

Row = Mapping[str, Any]


def cause(row: Row, name: str) -> str:
    """Why a figure of a row is as far off as it is: one of ``CAUSES``."""
    figure = row["figures"][name]
    of_bytes = name.endswith("bytes")
    if _apart(figure) <= (_NEAR_BYTES if of_bytes else _NEAR):
        return CLOSE
    if not row["same_grid"]:
        return "grid"
    if of_bytes:
        more = figure["device"] - figure["cpu"]
        return "little" if 0 <= more <= _LITTLE else UNEXPLAINED
    if name.startswith("branches"):
        return "predicated" if figure["cpu"] > figure["device"] else UNEXPLAINED
    return _of_requests(row["figures"], " ".join(name.split()[:2]))


def _of_requests(figures: Mapping[str, Any], access: str) -> str:
    """By the requests of one space and operation, such as ``global load``."""
    requests = figures.get(f"{access} requests")
    if requests is None or requests["device"] is None or _apart(requests) <= _NEAR:
        return UNEXPLAINED
    if requests["cpu"] > requests["device"]:
        return "merged"
    moved = figures.get(f"{access} sectors") or figures.get(f"{access} passes")
    more = moved is not None and _apart(moved) > _NEAR and moved["device"] > moved["cpu"]
    return "split" if more else "idle"


def _apart(figure: Mapping[str, Any]) -> float:
    difference = figure["difference"]
    return float("inf") if difference is None else abs(float(difference))


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """By figure, how many rows have which cause, and which rows none explains.

    Rows are left out where the profiler has no such counter.
    """
    found: dict[str, Any] = {}
    for row in rows:
        for name, figure in row["figures"].items():
            if figure["device"] is None:
                continue
            entry = found.setdefault(name, {"rows": 0, "causes": {}, "unexplained": []})
            why = cause(row, name)
            entry["rows"] += 1
            entry["causes"][why] = entry["causes"].get(why, 0) + 1
            if why == UNEXPLAINED:
                told = [row["kernel"], row["config"], row["launch"]]
                entry["unexplained"].append([*told, figure["difference"]])
    return found
