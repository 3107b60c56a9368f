"""The scoreboard of a build: the result of each task, counts, and both as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.base.listing import abridged, counted
from kabuild.base.printing import escaped, in_line
from kabuild.model.action import TRANSCRIPT
from kabuild.model.gate import Gate, Role, merged
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.task_result import TaskResult, has_finished
from kabuild.model.verdict import Verdict
from kabuild.report.judgement import WIDE
from kabuild.report.table import Style, plain, text_table

_MOST_COLUMNS = 100
"""Characters that are printed of an agent's own message."""


@dataclass(frozen=True)
class Totals:
    """Counts over gates (``passed`` ... ``infra``) and over actions (``executed``, ``cached``).

    A fleet executed ``remote`` of the executed ones.
    """

    executed: int
    cached: int
    passed: int = 0
    failed: int = 0
    rejected: int = 0
    skipped: int = 0
    infra: int = 0
    remote: int = 0


def task_results(
    tasks: Mapping[Label, tuple[tuple[Gate, Label], ...]],
    settled: Mapping[Label, Settled],
    telling: Mapping[Label, Label] | None = None,
) -> tuple[TaskResult, ...]:
    """One result per task: ``tasks`` maps each to its (gate, label) pairs.

    ``telling`` maps tasks to the actions whose facts are those of their agents.
    """
    made = []
    for label, gates in tasks.items():
        teller = settled.get(telling[label]) if telling and label in telling else None
        parts = (gate_result(gate, part, settled) for gate, part in gates)
        made.append(TaskResult.of(label, parts, teller.facts if teller else None))
    return tuple(made)


def gate_result(gate: Gate, label: Label, settled: Mapping[Label, Settled]) -> GateResult:
    """The result of the gate ``label``; CANCELLED if the build stopped before it settled."""
    item = settled.get(label) or Settled(label, Outcome.CANCELLED)
    return GateResult.of(gate, item, settled.get(item.stopped_by) if item.stopped_by else None)


def totals(table: Iterable[TaskResult], settled: Iterable[Settled]) -> Totals:
    """Count gates by verdict, and actions by cached or executed."""
    done = [item for item in settled if item.result is not None and _ran(item)]
    executed = sum(not item.cached for item in done)
    remote = sum(item.remote and not item.cached for item in done)
    gates = (gate for result in table for gate in result.gates.values())
    return count_gates(gates, Totals(executed, len(done) - executed, remote=remote))


def count_gates(gates: Iterable[GateResult], counts: Totals) -> Totals:
    """``counts`` plus these gates, by verdict."""
    words = [gate.word for gate in gates]
    return Totals(
        executed=counts.executed,
        cached=counts.cached,
        passed=counts.passed + words.count(Verdict.PASS.value),
        failed=counts.failed + words.count(Verdict.FAIL.value),
        rejected=counts.rejected + words.count(Verdict.REJECTED.value),
        skipped=counts.skipped + words.count(Verdict.SKIPPED.value),
        infra=counts.infra + words.count(Outcome.INFRA.value.upper()),
        remote=counts.remote,
    )


def render_table(table: Sequence[TaskResult], style: Style = plain) -> str:
    """A row for each task: its gates, speedup, score, and whether it was cached."""
    if not table:
        return ""
    shown = columns(table)
    figures = ("speedup", "score") if any(result.scored for result in table) else ()
    body = [_texts(result, shown, scored=bool(figures)) for result in table]
    drawn = text_table([["task", *shown, *figures, ""], *body], style)
    return "\n".join([drawn, *_footnotes(table, scored=bool(figures))])


def _footnotes(table: Sequence[TaskResult], *, scored: bool) -> Iterator[str]:
    """What to do about wide intervals, and where agents that did not finish left their words."""
    if scored and any(result.measured and result.measured.wide for result in table):
        yield f"{WIDE}; to measure again: --nocache_test_results"
    unfinished = [result.label.sub("agent") for result in table if not result.finished]
    if unfinished:
        from kabuild.report.views import view_of  # a null build has nothing to show

        files = [str(view_of(Path("out"), label) / TRANSCRIPT) for label in unfinished]
        yield in_line(f"what agents that did not finish said: {abridged(files)}")


def columns(table: Iterable[TaskResult]) -> list[str]:
    """The gates that have a column, in the order of judging; a score gate has figures instead."""
    declared = merged(tuple(g.declared for g in result.gates.values()) for result in table)
    return [gate.name for gate in declared if gate.role is not Role.SCORE]


def render_totals(counts: Totals, seconds: float, *, broken: int = 0) -> str:
    """The closing line: ``14 actions: 12 cached, 2 executed; 10 gates passed, 1 failed``.

    ``broken`` actions are counted separately: they ran without a result.
    """
    gates = [
        f"{number} {word}"
        for number, word in (
            (counts.passed, "passed"),
            (counts.failed, "failed"),
            (counts.rejected, "rejected"),
            (counts.skipped, "skipped"),
            (counts.infra, "not judged (infra)"),
        )
        if number
    ]
    actions = counts.executed + counts.cached + broken
    judged = f"; gates: {', '.join(gates)}" if gates else ""
    there = f" ({counts.remote} by the fleet)" if counts.remote else ""
    return (
        f"{counted(actions, 'action')}: {counts.cached} cached, {counts.executed} executed{there}"
        f"{f', {broken} broken' if broken else ''}{judged}; {seconds:.2f} s"
    )


def render_admission(table: Sequence[TaskResult], style: Style = plain) -> str:
    """The verdicts of ``validate`` on each task, with the seconds of the runs that made them.

    Findings of a gate that passed are shown in place of a reason.
    """

    def first(result: TaskResult) -> GateResult:
        return next(iter(result.gates.values()))

    rows = [("task", "verdict", "reason", "seconds")]
    judged = ((result, gate) for result in table for gate in result.gates.values())
    for result, gate in judged:
        once = "cached" if gate.run_seconds is None else f"cached, {gate.run_seconds:.1f} once"
        seconds = once if gate.cached else f"{gate.seconds:.1f}"
        of = result.label.short if gate is first(result) else f"  {gate.gate}"
        rows.append((of, gate.word, gate.reason or ", ".join(gate.findings) or "-", seconds))
    return text_table(rows, style)


def agent_end(facts: Mapping[str, Any]) -> str:
    """How an unfinished agent ended, in one line; empty if it finished."""
    if has_finished(facts):
        return ""
    state, why = str(facts["state"]), str(facts.get("message", ""))
    told = ": ".join(filter(None, ("agent", state.replace("_", " "), why)))
    return textwrap.shorten(escaped(told), _MOST_COLUMNS, placeholder="...")


def _texts(result: TaskResult, gates: Sequence[str], *, scored: bool) -> list[str]:
    words = (result.gates[gate].word if gate in result.gates else "" for gate in gates)
    figures = []
    if scored:
        measured, score = result.measured, result.score
        figures = [str(measured or "-"), "-" if score is None else f"{score:.1f}"]
    notes = (
        "cached" if result.cached else "",
        "" if result.hermetic else "not hermetic",
        f"tier {result.tier}" if result.tier else "",
        agent_end(result.agent),
    )
    return [result.label.short, *words, *figures, ", ".join(filter(None, notes))]


def _ran(item: Settled) -> bool:
    return item.outcome in {Outcome.DONE, Outcome.FAILED}
