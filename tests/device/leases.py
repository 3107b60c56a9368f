"""How far runs of the suite on several machines are apart.

    python leases.py NAME=suite.json... >results/h200/leases.json

Each file is what the stage ``suite`` of ``run_all.sh`` has left; NAME says which run it was.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = ("candidate_ns", "baseline_ns", "speedup", "low", "high")
CLOSE = 0.02

Run = Mapping[str, Mapping[str, float]]
"""By task and config, the figures of one run."""


def figures(suite: Mapping[str, Any]) -> Run:
    """What one run has measured."""
    return {
        f"{label} {case['config']}": {name: case[name] for name in FIGURES}
        for label, task in suite["tasks"].items()
        for case in task["configs"]
    }


def pairs(
    runs: Mapping[str, Run],
) -> Iterator[tuple[str, Mapping[str, float], Mapping[str, float]]]:
    """The figures of each config in each two runs that have it."""
    for one, other in itertools.combinations(runs.values(), 2):
        for name in one.keys() & other.keys():
            yield name, one[name], other[name]


def overlap(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether two intervals of a speedup have something in common."""
    return max(one["low"], other["low"]) <= min(one["high"], other["high"])


def apart(one: Mapping[str, float], other: Mapping[str, float], what: str) -> float:
    """How far the larger of two figures is above the smaller, as a share."""
    return max(one[what], other[what]) / min(one[what], other[what]) - 1


def main(arguments: Sequence[str]) -> None:
    """Print the figures of all runs."""
    named = (argument.partition("=") for argument in arguments)
    runs = {name: figures(json.loads(Path(path).read_bytes())) for name, _, path in named}
    print(json.dumps(runs, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
