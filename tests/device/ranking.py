"""Variants of kernels as a device ranks them, beside the time that is made of their counts.

    python tests/device/ranking.py COUNTS MODELLED.json PICTURE.svg [ORDERED.json]

fits the model again to what the stage ``modelled`` has left, writes that there, draws it, and
prints how it ranks. In what the stage ``ordered`` has left, it writes how that model orders them.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import counted
import time_model
import variant_counts
from variant_counts import PACKAGES
from variants import Variant, variants
from workplace import Workplace

_PROGRAM = Path(__file__).with_name("timed.py")
_LEFT = 20.0
_SIZE, _MARGIN = 560, 56


def measure(
    workplace: Workplace, counts: Mapping[str, Any], *, whole: bool = False
) -> dict[str, Any]:
    """Compile and time all variants that were counted, then rank them.

    With ``whole`` they are timed on the visible configs that the counted ones were made from.
    ``failed`` says by variant why there is no time; ``differ`` names those whose outputs are not
    those of the task's first.
    """
    known = counts["variants"]
    chosen = [
        variant
        for variant in variants()
        if known.get(variant.name, {}).get("calls")
        and known[variant.name]["source"] == variant_counts.digest(variant)
    ]
    variant_counts.declare(workplace, chosen)
    agent = f"--agent={counted.AGENT}"
    built = workplace.test(f"//{PACKAGES}/...", agent, "--gates=compile")
    wanted = [
        {**_wanted(workplace, variant, known[variant.name]), "whole": whole} for variant in chosen
    ]
    failed = {one["name"]: "it does not compile" for one in wanted if not _library(one).is_file()}
    rows = _timed(workplace, [one for one in wanted if one["name"] not in failed], failed)
    found: dict[str, Any] = {
        "counts": counts["revision"],
        "elements": counts["elements"],
        "seconds": {"compile": round(built.seconds, 1)},
        "failed": failed,
        "differ": sorted(row["name"] for row in rows if not row["same"]),
        "timed": {row["name"]: row["ns"] for row in rows},
    }
    return found if whole else {**found, **ranked(found, counts)}


def _library(wanted: Mapping[str, Any]) -> Path:
    return Path(wanted["library"])


def _wanted(workplace: Workplace, variant: Variant, one: Mapping[str, Any]) -> dict[str, Any]:
    """What ``timed.py`` has to know of a variant."""
    (call,) = one["calls"]
    package = workplace.root / PACKAGES / variant.name
    target = f"{PACKAGES}/{variant.name}:{variant.name}.compile"
    return {
        "name": variant.name,
        "task": variant.task,
        "spec": one["spec"],
        "of": call["of"],
        "config": call["config"],
        "reference": str(package / "reference.py"),
        "library": str(workplace.output(target, "kernel.so")),
    }


def _timed(
    workplace: Workplace, wanted: Sequence[Mapping[str, Any]], failed: dict[str, str]
) -> list[dict[str, Any]]:
    """The rows of what was timed, by as many processes as that takes."""
    rows: list[dict[str, Any]] = []
    left = list(wanted)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "variants.json"
        while left:
            if workplace.deadline - time.monotonic() < _LEFT:
                failed |= {one["name"]: "there was no time left" for one in left}
                break
            file.write_text(json.dumps(left))
            ran = workplace.program(sys.executable, str(_PROGRAM), str(file))
            lines = [json.loads(line) for line in ran.out.splitlines() if line.startswith("{")]
            rows += [line for line in lines if "ns" in line]
            failed |= {line["name"]: line["error"] for line in lines if "error" in line}
            done = {line["name"] for line in lines if "begun" in line}
            broke = {line["name"] for line in lines} - {row["name"] for row in rows} - {*failed}
            why = (ran.err.strip().splitlines() or ["it ended"])[-1][:200]
            failed |= dict.fromkeys(broke, f"the process ended with {ran.code}: {why}")
            if not done:
                failed |= {one["name"]: f"nothing was timed: {why}" for one in left}
                break
            left = [one for one in left if one["name"] not in done]
    return rows


def ranked(found: Mapping[str, Any], counts: Mapping[str, Any]) -> dict[str, Any]:
    """How the model ranks what was timed and is right."""
    rows = _rows(found, counts)
    tasks = {row["task"] for row in rows}
    if len(tasks) < 2:
        return {"ranking": None}
    figures = {"variants": len(rows), "of_tasks": len(tasks)}
    return {"ranking": {**figures, **time_model.tested(rows)}}


def ordered(
    whole: Mapping[str, Any], found: Mapping[str, Any], counts: Mapping[str, Any]
) -> dict[str, Any]:
    """How the model of ``found`` orders what was timed on visible configs.

    Each half of the tasks is ordered by the model that was fitted to the other half.
    """
    times = found["ranking"]["modelled"]
    rows = [row for row in _rows(whole, counts) if row["name"] in times]
    tasks = time_model.within(rows, times)
    return {"within_tasks": time_model.summed(tasks), "tasks": tasks}


def _rows(found: Mapping[str, Any], counts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was timed and is right, with its counts."""
    known = counts["variants"]
    return [
        {"name": name, "task": known[name]["task"], "call": known[name]["calls"][0], "ns": ns}
        for name, ns in found["timed"].items()
        if name not in found["differ"] and known[name]["calls"]
    ]


def draw(found: Mapping[str, Any]) -> str:
    """The modelled time of each variant over the measured one, as SVG; both axes logarithmic."""
    modelled = found["ranking"]["modelled"]
    points = [(found["timed"][name], value) for name, value in sorted(modelled.items())]
    low = math.floor(math.log10(min(map(min, points))))
    high = math.ceil(math.log10(max(map(max, points))))
    inner = _SIZE - 2 * _MARGIN

    def place(ns: float) -> float:
        return (math.log10(ns) - low) / (high - low) * inner

    lines = []
    for power in range(low, high + 1):
        at = place(10.0**power)
        x, y = _MARGIN + at, _SIZE - _MARGIN - at
        said = _said(10.0**power)
        ends = (_MARGIN, _SIZE - _MARGIN)
        lines += [
            f'<path d="M{x:.1f} {ends[0]}V{ends[1]}M{ends[0]} {y:.1f}H{ends[1]}"/>',
            f'<text x="{x:.1f}" y="{ends[1] + 18}" text-anchor="middle">{said}</text>',
            f'<text x="{ends[0] - 6}" y="{y + 4:.1f}" text-anchor="end">{said}</text>',
        ]
    dots = [
        f'<circle cx="{_MARGIN + place(x):.1f}" cy="{_SIZE - _MARGIN - place(y):.1f}" r="3"/>'
        for x, y in points
    ]
    ends = (_MARGIN, _SIZE - _MARGIN)
    spearmans = ", ".join(f"{half['spearman']:.2f}" for half in found["ranking"]["halves"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" role="img" '
        'font-family="sans-serif" font-size="12">\n'
        f"<title>{len(points)} variants: the modelled time over the measured one</title>\n"
        "<style>path{stroke:#8884;fill:none}circle{fill:#0072b2;fill-opacity:.6}text{fill:#777}"
        "</style>\n"
        + "\n".join(lines)
        + f'\n<path d="M{ends[0]} {ends[1]}L{ends[1]} {ends[0]}"/>\n'
        + "\n".join(dots)
        + f'\n<text x="{_SIZE / 2}" y="{_SIZE - 12}" text-anchor="middle">measured</text>\n'
        f'<text x="{_MARGIN}" y="{_MARGIN - 24}">modelled; Spearman {spearmans}, each half of the '
        "tasks by a model of the other</text>\n</svg>\n"
    )


def _said(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def main() -> None:
    """Rank again, and draw."""
    if len(sys.argv) not in {4, 5}:
        raise SystemExit("usage: ranking.py COUNTS MODELLED.json PICTURE.svg [ORDERED.json]")
    counts = variant_counts.read(Path(sys.argv[1]))
    found = json.loads(Path(sys.argv[2]).read_bytes())
    found |= ranked(found, counts)
    Path(sys.argv[2]).write_text(json.dumps(found, indent=1, sort_keys=True))
    Path(sys.argv[3]).write_text(draw(found))
    ranking = found["ranking"]
    for half in ranking["halves"]:
        print(f"fitted on {half['fitted_on']}, tested on {half['tested_on']}: {half['spearman']}")
    print(f"within tasks, the medians: {ranking['within_tasks']}")
    for task, row in ranking["tasks"].items():
        print(f"{task}: {row}")
    for file in map(Path, sys.argv[4:]):
        whole = json.loads(file.read_bytes())
        whole |= {"ranking": ordered(whole, found, counts)}
        file.write_text(json.dumps(whole, indent=1, sort_keys=True))
        print(f"{file.name}: {whole['ranking']['within_tasks']}")


if __name__ == "__main__":
    main()
