"""AgentKernelArena's own functions on what kabuild computes and writes.

They run from a real checkout: ``make test-imports PATHS="aka=../AgentKernelArena"``.
"""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from terms import scoring

from kabuild.report.arena import RESULT, SUMMARY, write_arena
from tests.kabuild.report.test_page import evaluation, result

from .test_checkouts import GIVEN

pytestmark = pytest.mark.skipif("aka" not in GIVEN, reason="no aka in PATHS")

_SPEEDUP = """
import json, sys
from src.score import score
from src.testcases import TestCaseResult, calculate_average_speedup

def cases(times):
    return [TestCaseResult(test_case_id=name, execution_time_ms=ms) for name, ms in times.items()]

def points(compiled, correct, base, best):
    mean = calculate_average_speedup(cases(base), cases(best))
    return mean, score(compiled, correct, 0.0, 0.0, mean)

print(json.dumps([points(*one) for one in json.load(sys.stdin)]))
"""
_REPORT = """
import sys
from pathlib import Path
from src.postprocessing import general_post_processing

general_post_processing([str(path.parent) for path in Path(sys.argv[1]).glob("*/task_result.yaml")],
                        None)
"""


def _theirs(script: str, *arguments: str, given: str = "") -> str:
    """What a script prints that imports modules of the checkout."""
    command = [sys.executable, "-c", script, *arguments]
    where = Path(GIVEN["aka"]).resolve()
    ran = subprocess.run(
        command, cwd=where, input=given, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_points_are_those_of_their_scorer_on_the_same_times() -> None:
    times: list[tuple[dict[str, float], dict[str, float]]] = [
        ({"a": 1.58}, {"a": 1.0}),
        ({"a": 2.0, "b": 4.0}, {"b": 1.0, "a": 2.0}),
        ({"a": 0.1, "b": 0.3, "c": 7.0}, {"c": 9.0, "a": 0.05, "b": 0.02}),
        ({"a": 1e-4}, {"a": 3600.0}),
    ]
    passed = [(False, False), (True, False), (True, True)]
    asked = [(*gates, *pair) for gates, pair in itertools.product(passed, times)]

    theirs = json.loads(_theirs(_SPEEDUP, given=json.dumps(asked)))

    for (compiled, correct, base, best), (mean, points) in zip(asked, theirs, strict=True):
        ratios = scoring.ratios([*base], base, best)
        assert sum(ratios) / len(ratios) == pytest.approx(mean)
        assert scoring.aka(scoring.Outcome(compiled, correct, ratios)) == pytest.approx(points)


def test_a_run_directory_reads_the_same_to_them(tmp_path: Path) -> None:
    """Their report of it has our names, scores and speedups, and they find the same score."""
    items = [result("softmax", 4.0), result("gemm", None), result("rope", 0.5, family="torch2hip")]
    scored = [_with_score(one) for one in items]
    write_arena(evaluation("ours", *scored), tmp_path / "run")
    ours = _rows(tmp_path / "run" / SUMMARY)
    records = [yaml.safe_load(p.read_text()) for p in sorted(tmp_path.glob(f"run/*/{RESULT}"))]

    _theirs(_REPORT, str(tmp_path / "run"))

    assert _rows(tmp_path / "run" / SUMMARY) == ours
    again = [yaml.safe_load(p.read_text()) for p in sorted(tmp_path.glob(f"run/*/{RESULT}"))]
    assert [one["score"] for one in again] == pytest.approx([one["score"] for one in records])
    assert [one["score"] for one in records] == [20.0, 520.0, 170.0]


def _with_score(one: Any) -> Any:
    """The result with the points that kabuild's policy gives."""
    from dataclasses import replace

    ratios = (one.figures["speedup"],) if one.correct else ()
    points = scoring.aka(scoring.Outcome(True, one.correct, ratios))
    return replace(one, figures={**one.figures, "scores": {"aka": points}})


def _rows(path: Path) -> list[tuple[Any, ...]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("Score", "Speedup")
    return sorted(
        (row["Task Name"], row["Task Type"], *(round(float(row[n]), 4) for n in numbers))
        for row in rows
    )
