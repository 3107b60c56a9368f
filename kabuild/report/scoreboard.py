"""The scoreboard: what each task came to, as values that every report prints from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.model.label import Label
from kabuild.model.options import ON_REQUEST, deciding
from kabuild.model.result import Outcome, Settled
from kabuild.model.verdict import Verdict
from kabuild.report.causes import in_one_line, is_broken


@dataclass(frozen=True)
class GateCell:
    """One gate of one task. ``verdict`` is None when nothing was judged (INFRA, cancelled).

    ``stopper`` is the action that ``settled.stopped_by`` names.
    """

    gate: str
    settled: Settled
    stopper: Settled | None = None

    @property
    def verdict(self) -> Verdict | None:
        """What the gate said."""
        return self.settled.verdict.verdict if self.settled.verdict else None

    @property
    def word(self) -> str:
        """The verdict in one word, for tables."""
        if self.verdict:
            return self.verdict.value
        return self.settled.outcome.value.upper()

    @property
    def reason(self) -> str:
        """Why, machine-readable; empty on PASS."""
        verdict = self.settled.verdict
        return verdict.reason if verdict else self.settled.fault

    @property
    def said(self) -> str:
        """The verdict with its reason, for people: ``FAIL (COMPILE_ERROR)``."""
        return f"{self.word} ({self.reason})" if self.reason else self.word

    @property
    def made(self) -> Outcome:
        """What it came to where it was to be made: a gate that said no has failed."""
        refused = self.verdict in {Verdict.FAIL, Verdict.REJECTED}
        return Outcome.FAILED if refused else self.settled.outcome

    @property
    def hermetic(self) -> bool:
        """Whether nothing but its inputs was in reach of what ran, if anything ran."""
        return self.settled.result is None or self.settled.result.hermetic

    @property
    def broken(self) -> Settled | None:
        """The action that broke, so that this gate was not judged: itself, or another one."""
        broken = self.stopper or self.settled
        return broken if is_broken(broken) and broken.verdict is None else None

    @property
    def summary(self) -> str:
        """One line for people: the verdict's, after what differed between runs of a flake; where
        an action broke, why it did."""
        settled = self.settled
        if self.broken:
            return in_one_line(self.detail)
        if settled.verdict is None:
            return settled.message
        if settled.outcome is Outcome.DONE and settled.message:
            return f"{settled.message}; {settled.verdict.summary}"
        return settled.verdict.summary

    @property
    def detail(self) -> str:
        """Several lines for people: the verdict's; where an action broke, all that is known."""
        if self.broken:
            own = self.broken.label == self.settled.label
            return self.broken.message if own else self.broken.account
        return self.settled.verdict.detail if self.settled.verdict else self.settled.message


@dataclass(frozen=True)
class TaskRow:
    """One task with the gates that were asked for, in the order in which they are judged.

    ``facts`` are those of its agent; the label has the number of the trial, after the first.
    """

    label: Label
    cells: tuple[GateCell, ...]
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def deciding(self) -> tuple[GateCell, ...]:
        """The gates by which this trial counts in figures."""
        gates = deciding([cell.gate for cell in self.cells])
        return tuple(cell for cell in self.cells if cell.gate in gates)

    @property
    def passed(self) -> bool:
        """Whether every gate said PASS."""
        return all(cell.verdict is Verdict.PASS for cell in self.cells)

    @property
    def broken(self) -> bool:
        """Whether some gate was not judged for the machine's sake."""
        return any(cell.settled.outcome is Outcome.INFRA for cell in self.cells)

    @property
    def cached(self) -> bool:
        """Whether no gate of this task ran."""
        return all(cell.settled.cached or cell.word == "SKIPPED" for cell in self.cells)

    @property
    def hermetic(self) -> bool:
        """Whether every gate of this task ran in a sandbox."""
        return all(cell.hermetic for cell in self.cells)

    @property
    def problems(self) -> tuple[GateCell, ...]:
        """The gate that decided, the first that did not say PASS; then what gates found that
        decide nothing and were asked for by name: it may be why."""
        found = [cell for cell in self.cells if cell.verdict is not Verdict.PASS]
        said = {Verdict.FAIL, Verdict.REJECTED}
        further = [cell for cell in found[1:] if cell.gate in ON_REQUEST and cell.verdict in said]
        return (*found[:1], *further)

    def figure(self, name: str) -> float | None:
        """A number of the score gate, such as ``speedup``; None where there is none."""
        for cell in self.cells:
            if cell.gate == "score" and cell.settled.verdict:
                return _number(cell.settled.verdict.data, name)
        return None


@dataclass(frozen=True)
class Totals:
    """Counts over gates (``passed`` ... ``infra``) and over actions (``executed``, ``cached``)."""

    executed: int
    cached: int
    passed: int
    failed: int
    rejected: int
    skipped: int
    infra: int


def rows(
    tasks: Mapping[Label, tuple[tuple[str, Label], ...]],
    settled: Mapping[Label, Settled],
    telling: Mapping[Label, Label] | None = None,
) -> tuple[TaskRow, ...]:
    """One row per task: ``tasks`` maps each to its (gate, label) pairs.

    ``telling`` maps tasks to the actions whose facts are theirs.

    Gates that never settled (the build stopped before them) show as CANCELLED: a task
    stays in the denominator whatever happens to it.
    """
    made = []
    for label, gates in tasks.items():
        cells = tuple(cell_of(gate, part, settled) for gate, part in gates)
        teller = settled.get(telling[label]) if telling and label in telling else None
        made.append(TaskRow(label, cells, teller.facts if teller else {}))
    return tuple(made)


def cell_of(gate: str, label: Label, settled: Mapping[Label, Settled]) -> GateCell:
    """How the action ``label`` settled, and what stopped it; CANCELLED where it never settled."""
    item = settled.get(label) or Settled(label, Outcome.CANCELLED)
    return GateCell(gate, item, settled.get(item.stopped_by) if item.stopped_by else None)


def totals(table: Iterable[TaskRow], settled: Iterable[Settled]) -> Totals:
    """Count gates by verdict, and actions by where their results came from."""
    cells = [cell for row in table for cell in row.cells]
    done = [item for item in settled if item.result is not None and _ran(item)]
    words = [cell.verdict for cell in cells]
    return Totals(
        executed=sum(not item.cached for item in done),
        cached=sum(item.cached for item in done),
        passed=words.count(Verdict.PASS),
        failed=words.count(Verdict.FAIL),
        rejected=words.count(Verdict.REJECTED),
        skipped=words.count(Verdict.SKIPPED),
        infra=sum(cell.settled.outcome is Outcome.INFRA for cell in cells),
    )


def _ran(item: Settled) -> bool:
    return item.outcome in {Outcome.DONE, Outcome.FAILED}


def _number(data: Mapping[str, Any], name: str) -> float | None:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
