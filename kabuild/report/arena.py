"""AgentKernelArena's run directories, read with care and written.

Format: https://github.com/AMD-AGI/AgentKernelArena, commit d6f7c8a4 (``src/evaluator.py`` writes
``task_result.yaml``, ``src/postprocessing.py`` ``overall_summary.csv``). Times are milliseconds.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kabuild.base.errors import Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.model.figure import number, positive
from kabuild.model.gate import Gate
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.leaderboard import passing

RESULT = "task_result.yaml"
SUMMARY = "reports/overall_summary.csv"
DOUBT = (
    "judged by AgentKernelArena: the kernel ran in the process that graded it, and neither inputs "
    "nor samples were kept, so it cannot be rerun"
)
OURS = (
    "exported by kabuild as a run of AgentKernelArena: such a directory has neither inputs nor "
    "samples, so it cannot be rerun; the bundle that 'kabuild publish' writes can be"
)
COMPILED = Gate("compile", share="compiled")
CORRECT = Gate("correctness", share="correct")
RECORD = Gate("record")
"""Stands for a record that is not credible."""

_COLUMNS = ("Task Name", "Task Type", "Score", "Speedup", "Optimization_summary")
_JUDGE = "kabuild "
_SIZE = 1 << 20
_TOLERANCE = 10.0
"""The factor by which a mean of ratios may differ from the ratio of means."""


def is_arena_run(path: Path) -> bool:
    """Whether a directory holds the results of a run."""
    return path.is_dir() and any(path.glob(f"*/{RESULT}"))


def arena_runs(path: Path) -> tuple[Path, ...]:
    """A run, or the runs directly below a directory, as reports of several evaluations."""
    if is_arena_run(path) or not path.is_dir():
        return (path,) if is_arena_run(path) else ()
    return tuple(item for item in sorted(path.iterdir()) if is_arena_run(item))


def read_arena(path: Path) -> Evaluation:
    """The evaluation in a run directory.

    Every task's directory counts, also one without a result, which the run's own summary omits.
    Records that are not credible are rejected with a reason. Raises ``OSError``.
    """
    folders = [item for item in sorted(path.iterdir()) if item.is_dir() and item.name != "reports"]
    read = [_read_task(folder) for folder in folders]
    ours = bool(read) and all(judge.startswith(_JUDGE) for _, judge in read)
    return Evaluation(
        name=path.resolve().name,
        kabuild="-",
        platform={"name": "as recorded by " + ("kabuild" if ours else "AgentKernelArena")},
        request={"policy": "aka"},
        results=tuple(result for result, _ in read),
        source=path.name,
        doubt=OURS if ours else DOUBT,
        gates=(COMPILED, CORRECT),
    )


def run_folders(evaluations: Sequence[Evaluation], directory: Path) -> list[Path]:
    """The directory of each evaluation's run: ``directory``, or one below it by name."""
    if len(evaluations) == 1:
        return [directory]
    found: list[Path] = []
    for item in evaluations:
        name = "".join(c if c.isalnum() or c in "_-+." else "_" for c in item.name).lstrip(".")
        path = directory / (name or "_")
        found.append(path if path not in found else directory / f"{name}_{len(found) + 1}")
    return found


def write_arena(evaluation: Evaluation, directory: Path) -> list[Path]:
    """Write a run directory of the evaluation. Returns the files. Raises ``OSError``.

    Unjudged tasks are left out: the format could only call them failures.
    """
    written = []
    for result in filter(_is_judged, evaluation.results):
        path = directory / _folder(result) / RESULT
        text = yaml.safe_dump(_record(evaluation, result), sort_keys=False, allow_unicode=True)
        atomic_write(path, text.encode())
        written.append(path)
    summary = directory / SUMMARY
    atomic_write(summary, _summary(evaluation).encode())
    return [*written, summary]


def _is_judged(result: TaskResult) -> bool:
    return result.judged


def _name(result: TaskResult) -> str:
    return result.label.in_trial(1).name


def _folder(result: TaskResult) -> str:
    trial = f"_trial{result.trial}" if result.trial > 1 else ""
    return f"{result.family}_{_name(result)}{trial}"


def _record(evaluation: Evaluation, result: TaskResult) -> dict[str, Any]:
    compiled = bool(passing(result, COMPILED.share))
    correct, gate = result.correct, result.problem
    problem = f"{gate.gate}: {gate.reason or gate.word}: {gate.summary}" if gate else None
    base = _milliseconds(result, "baseline_ns")
    scores = result.figures.get("scores")
    best = _milliseconds(result, "candidate_ns")
    low, high = result.interval or (None, None)
    return {  # AgentKernelArena ignores what it does not know: our judge, and the interval
        "task_name": f"{result.family}/{_name(result)}",
        "judge": f"{_JUDGE}{evaluation.kabuild}",
        "pass_compilation": compiled,
        "compilation_error_message": None if compiled else problem,
        "pass_correctness": correct,
        "correctness_error_message": None if correct or not compiled else problem,
        "base_execution_time": base,
        "best_optimized_execution_time": best,
        "speedup_ratio": result.speedup or 0.0,
        "speedup_low": low,
        "speedup_high": high,
        "valid_baseline_cases": len(result.cases),
        "valid_optimized_cases": len(result.cases),
        "optimization_summary": f"{evaluation.name}, judged by kabuild {evaluation.kabuild}",
        "score": (number(scores, "aka") if isinstance(scores, dict) else None) or 0.0,
    }


def _milliseconds(result: TaskResult, name: str) -> float:
    times = [time / 1e6 for case in result.cases if (time := positive(case, name))]
    return statistics.fmean(times) if times and result.correct else 0.0


def _summary(evaluation: Evaluation) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in filter(_is_judged, evaluation.results):
        record = _record(evaluation, result)
        cells = (
            *(record["task_name"], result.family, record["score"]),
            *(record["speedup_ratio"], record["optimization_summary"]),
        )
        writer.writerow(dict(zip(_COLUMNS, cells, strict=True)))
    return text.getvalue()


def _read_task(folder: Path) -> tuple[TaskResult, str]:
    """What a task's directory says, and who judged it by its own account."""
    try:
        record, problem = _load(folder / RESULT), ""
    except UsageError as error:
        record, problem = {}, error.message
    name = "".join(c if c.isalnum() or c in "_-+." else "_" for c in folder.name)
    family = str(record.get("task_name", "")).partition("/")[0] or "unknown"
    family = "".join(c if c.isalnum() or c in "_-" else "_" for c in family)
    problem = problem or next(_doubts(record), "")
    speedup = Speedup.read(record, "speedup_ratio")
    label = Label(f"arena/{family}/{name}", name)
    said = _gates(record, problem)
    gates = {gate.name: GateResult.read(label, gate, entry) for gate, entry in said}
    is_timed = speedup and record.get("pass_correctness") and not problem
    figures = speedup.to_json() if speedup and is_timed else {}
    return TaskResult(label, gates, figures), str(record.get("judge", ""))


def _load(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(Reason.BAD_FLAG, f"it left no {RESULT}")
    if path.stat().st_size > _SIZE:
        raise UsageError(Reason.BAD_FLAG, f"its {RESULT} has {path.stat().st_size} bytes")
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = str(error).partition("\n")[0]
        raise UsageError(Reason.BAD_FLAG, f"its {RESULT} is not valid YAML: {line}") from None
    if not isinstance(value, dict):
        raise UsageError(Reason.BAD_FLAG, f"its {RESULT} is not a mapping")
    return value


def _doubts(record: Mapping[str, Any]) -> Iterator[str]:
    """Why a record is not credible, the plainest reason first."""
    for name in ("pass_compilation", "pass_correctness"):
        if not isinstance(record.get(name), bool):
            yield f"{name} is {record.get(name)!r}, neither true nor false"
    if not record.get("pass_correctness"):
        return
    if not record.get("pass_compilation"):
        yield "it claims to be correct but did not compile"
    yield from _doubtful_times(record)
    if record.get("benchmark_method_consistent") is False:
        yield "baseline and candidate were timed by different methods"
    counts = (record.get("valid_baseline_cases"), record.get("valid_optimized_cases"))
    if None not in counts and counts[0] != counts[1]:
        yield f"{counts[0]} cases of the baseline were timed, and {counts[1]} of the candidate"


def _doubtful_times(record: Mapping[str, Any]) -> Iterator[str]:
    for name in ("speedup_ratio", "base_execution_time", "best_optimized_execution_time"):
        value = record.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{name} is {value!r:.80}, which is not a number"
            return
        if positive(record, name) is None:
            yield f"{name} is {_told(value)}, which is not a time or a ratio"
            return
    said = record["speedup_ratio"]
    found = Speedup.read(record, "speedup_ratio")
    assert found is not None, "it is positive"
    ratio = record["base_execution_time"] / record["best_optimized_execution_time"]
    if not 1 / _TOLERANCE <= found.middle / ratio <= _TOLERANCE:
        yield f"speedup_ratio is {said:g} where its own mean times give {ratio:.3g}"
    if found.ends and not found.ends[0] <= said <= found.ends[1]:
        low, high = found.ends
        yield f"speedup_ratio is {said:g}, and its interval {low:g} to {high:g}"


def _told(value: float) -> str:
    try:
        return f"{value:.6g}"
    except OverflowError:
        return "beyond all bounds"


def _gates(record: Mapping[str, Any], problem: str) -> Iterator[tuple[Gate, dict[str, Any]]]:
    if problem:
        said = {"verdict": "REJECTED", "reason": "NOT_TRUSTED", "summary": problem, "detail": ""}
        yield RECORD, said
        return
    for gate, passed, why in (
        (COMPILED, "pass_compilation", "compilation_error_message"),
        (CORRECT, "pass_correctness", "correctness_error_message"),
    ):
        good = bool(record[passed])
        said = {
            "verdict": "PASS" if good else "FAIL",
            "reason": "" if good else "AS_RECORDED",
            "summary": str(record.get(why) or ""),
            "detail": "",
        }
        yield gate, said
