"""AgentKernelArena's directories: read with distrust, written so that it reads them."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kabuild.report.arena import arena_runs, is_arena_run, read_arena, run_folders, write_arena
from kabuild.report.exports import brief
from kabuild.report.leaderboard import leaderboard
from tests.kabuild.report.test_page import PAIR
from tests.testkit.evaluations import said, saying

if TYPE_CHECKING:
    from pathlib import Path

HONEST = {
    "task_name": "hip2hip/gpumode/SiLU",
    "pass_compilation": True,
    "compilation_error_message": None,
    "pass_correctness": True,
    "correctness_error_message": None,
    "base_execution_time": 0.4,
    "best_optimized_execution_time": 0.2,
    "speedup_ratio": 2.1,
    "benchmark_method_consistent": True,
    "valid_baseline_cases": 5,
    "valid_optimized_cases": 5,
}


def run_of(directory: Path, **tasks: dict[str, Any] | str | None) -> Path:
    """A run directory; a task of ``None`` left no result."""
    for name, record in tasks.items():
        (directory / name).mkdir(parents=True)
        if record is not None:
            text = record if isinstance(record, str) else yaml.safe_dump(record)
            (directory / name / "task_result.yaml").write_text(text)
    return directory


def test_an_honest_record_is_taken_with_its_speedup(tmp_path: Path) -> None:
    found = read_arena(run_of(tmp_path / "run", silu=HONEST))
    (result,) = found.results
    assert (result.speedup, result.family, result.correct) == (2.1, "hip2hip", True)
    assert "ran in the process that graded it" in found.doubt


def test_a_task_without_a_result_stays_in_the_denominator(tmp_path: Path) -> None:
    """Their own summary counts three of four, and says 100 %."""
    failed = HONEST | {"pass_correctness": False, "correctness_error_message": "off by one"}
    run = run_of(tmp_path / "run", a=HONEST, b=HONEST, c=failed, gone=None)
    (run / "reports").mkdir()
    (row, *_) = leaderboard([read_arena(run)])
    assert row.tasks == 4
    assert row.shares["correct"] == 0.5
    assert brief(read_arena(run).results[2]) == "correctness: AS_RECORDED"


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (None, "it left no task_result.yaml"),
        ("a: [", "is not valid YAML"),
        ("- a", "is not a mapping"),
        (HONEST | {"pass_correctness": "yes"}, "neither true nor false"),
        (HONEST | {"pass_compilation": False}, "correct but did not compile"),
        (HONEST | {"speedup_ratio": float("inf")}, "speedup_ratio is inf"),
        (HONEST | {"speedup_ratio": float("nan")}, "speedup_ratio is nan"),
        (HONEST | {"speedup_ratio": "1000"}, "not a number"),
        (HONEST | {"speedup_ratio": 1000.0}, "its own mean times give 2"),
        (HONEST | {"best_optimized_execution_time": -1.0}, "not a time or a ratio"),
        (HONEST | {"best_optimized_execution_time": 0.0}, "not a time or a ratio"),
        (
            HONEST | {"base_execution_time": 10**400},
            "beyond all bounds, which is not a time or a ratio",
        ),
        (HONEST | {"speedup_ratio": [2.1]}, "not a number"),
        (HONEST | {"benchmark_method_consistent": False}, "different methods"),
        (
            HONEST | {"speedup_low": 2.2, "speedup_high": 3.0},
            "speedup_ratio is 2.1, and its interval 2.2 to 3",
        ),
        (HONEST | {"valid_optimized_cases": 1}, "5 cases of the baseline were timed, and 1"),
        ("x" * (2 << 20), "has 2097152 bytes"),
    ],
)
def test_what_cannot_be_believed_is_refused_by_name(
    tmp_path: Path, record: dict[str, Any] | str | None, why: str
) -> None:
    (result,) = read_arena(run_of(tmp_path / "run", task=record)).results
    refused = result.gates["record"]
    assert (refused.word, refused.reason) == ("REJECTED", "NOT_TRUSTED")
    assert why in refused.summary
    assert result.speedup is None


def test_ours_has_the_shape_of_theirs_and_reads_back(tmp_path: Path) -> None:
    written = write_arena(PAIR[0], tmp_path / "run")
    assert is_arena_run(tmp_path / "run")
    with written[-1].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["Task Name", "Task Type", "Score", "Speedup", "Optimization_summary"]
    assert [row["Task Type"] for row in rows] == ["hip2hip", "hip2hip", "torch2hip", "torch2hip"]

    again = {result.label.name: result for result in read_arena(tmp_path / "run").results}
    for result in PAIR[0].results:
        assert again[f"{result.family}_{result.label.name}"].speedup == result.speedup


def test_ours_keeps_its_judge_and_its_intervals(tmp_path: Path) -> None:
    """And nothing that is true of AgentKernelArena is said of it."""
    (first, *_) = PAIR[0].results
    gates = said(first)
    figures = {"speedup": 1.9, "speedup_low": 1.9, "speedup_high": 90.0}
    wide = replace(saying(first, gates), figures=figures)
    assert str(wide.measured) == "~1.90x"

    write_arena(replace(PAIR[0], results=(wide,)), tmp_path / "run")
    found = read_arena(tmp_path / "run")

    (again,) = found.results
    assert (str(again.measured), again.interval) == ("~1.90x", (1.9, 90.0))
    assert found.doubt.startswith("exported by kabuild")
    assert "AgentKernelArena" not in found.platform["name"]
    (tmp_path / "run/other").mkdir()
    assert "ran in the process that graded it" in read_arena(tmp_path / "run").doubt


def test_several_lie_below_one_directory_whatever_they_are_called(tmp_path: Path) -> None:
    names = ("a on b: c", "a on b/ c", "../d")
    several = [replace(PAIR[0], name=name) for name in names]
    folders = run_folders(several, tmp_path)

    assert len(set(folders)) == 3
    assert {folder.parent for folder in folders} == {tmp_path}
    assert run_folders(several[:1], tmp_path) == [tmp_path]
    assert arena_runs(tmp_path) == ()
    for item, folder in zip(several, folders, strict=True):
        write_arena(item, folder)
    assert sorted(arena_runs(tmp_path)) == sorted(folders)
    assert arena_runs(folders[0]) == (folders[0],)


def test_what_was_not_judged_is_no_failure_of_theirs(tmp_path: Path) -> None:
    stopped = saying(PAIR[0].results[0], {"compile": {"verdict": "INFRA"}})
    write_arena(replace(PAIR[0], results=(stopped, PAIR[0].results[1])), tmp_path / "run")

    (result,) = read_arena(tmp_path / "run").results
    assert result.label.name == "hip2hip_gemm"
    summary = (tmp_path / "run/reports/overall_summary.csv").read_text()
    assert "softmax" not in summary


def test_names_of_theirs_cannot_leave_a_label(tmp_path: Path) -> None:
    odd = HONEST | {"task_name": "../../etc\x1b[31m/passwd"}
    (result,) = read_arena(run_of(tmp_path / "run", **{"a b;c": odd})).results
    assert "\x1b" not in str(result.label)
    assert ".." not in result.label.package
