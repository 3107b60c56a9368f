"""The failures of a build: each cause once, each deciding verdict, and a command to rerun it."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kabuild.base.listing import abridged
from kabuild.base.printing import escaped, in_line, marked, shortened
from kabuild.model.gate import NO_GATE
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.task_result import TaskResult

_BROKEN = frozenset({Outcome.INFRA, Outcome.FAILED})
_NUMBER_OF_ONE = re.compile(r"(?=[\w-]*\d)[\w-]{12,}")
"""Identifiers of requests or sessions, which differ for the same cause."""

_MOST_LINES, _MOST_COLUMNS = 40, 400
"""Lines that are printed of a detail, which a candidate may have made long."""


@dataclass(frozen=True)
class Cause:
    """Why actions broke by themselves; ``actions`` are in the order of settling."""

    actions: tuple[Settled, ...]

    @property
    def first(self) -> Settled:
        """The action whose message is shown."""
        return self.actions[0]

    @property
    def more(self) -> str:
        """How many others: ``and 3 more``; empty if none."""
        return f"and {len(self.actions) - 1} more" if self.actions[1:] else ""

    @property
    def title(self) -> str:
        """The first action's name, and the number of others."""
        return f"{self.first.label} {self.more}".rstrip()

    @property
    def others(self) -> str:
        """The first few of the others by name; empty if none."""
        others = abridged([str(action.label) for action in self.actions[1:]])
        return f"also affected: {others}" if others else ""


def broken(settled: Iterable[Settled]) -> int:
    """How many actions broke without a result: they were neither cached nor executed."""
    found = [action for cause in causes(settled) for action in cause.actions]
    return sum(action.outcome is Outcome.INFRA or action.result is None for action in found)


def causes(settled: Iterable[Settled]) -> list[Cause]:
    """The root causes of all failures, in order.

    Consequences are not causes. Two causes are equal if their messages differ only in the action's
    name or in the number of a request.
    """
    found: dict[tuple[Outcome, str, str], list[Settled]] = {}
    for item in settled:
        if item.outcome in _BROKEN and item.stopped_by is None:
            said = _NUMBER_OF_ONE.sub("", item.message.replace(str(item.label), ""))
            found.setdefault((item.outcome, item.fault, said), []).append(item)
    return [Cause(tuple(items)) for items in found.values()]


def render_causes(settled: Iterable[Settled]) -> list[str]:
    """One paragraph per cause that actions broke of: the action, its message, what it affects."""
    return [_broken(cause) for cause in causes(settled)]


def render_failures(
    table: Sequence[TaskResult],
    settled: Iterable[Settled],
    *,
    command: str = "test",
    rerun: Sequence[str] = (),
) -> list[str]:
    """One paragraph per cause that actions broke of, per task that did not pass for another
    reason, and per gate that said no but was not asked for: it is the cause of something that was.

    ``command`` is the one of kabuild that judged, and ``rerun`` are the flags that the same
    verdict needs, such as ``--solution=x.hip``.
    """
    items = list(settled)
    asked = {gate.label for result in table for gate in result.gates.values()}
    problems = [GateResult.of(NO_GATE, item) for item in items if item.label not in asked]
    problems = [gate for gate in problems if gate.failed]
    problems += [gate for result in table for gate in result.problems]
    told = {action.label for cause in causes(items) for action in cause.actions}
    said = [gate for gate in problems if gate.verdict and gate.cause not in told]
    return [*render_causes(items), *(_gate_problem(gate, command, rerun) for gate in said)]


def _broken(cause: Cause) -> str:
    item = cause.first
    what = "could not be judged" if item.outcome is Outcome.INFRA else "failed"
    head = f"{cause.title}: {what}"
    others = [f"  {cause.others}"] if cause.others else []
    first, _, rest = escaped(item.message).partition("\n")
    message = f"{first}\n{textwrap.dedent(rest)}"  # hints stand below the head, as the message does
    return "\n".join([head, *_indented(message), *others])


def _gate_problem(gate: GateResult, command: str, rerun: Sequence[str]) -> str:
    repeated = gate.detail.startswith(gate.summary)
    shown = gate.note if repeated else gate.headline
    summary = f": {in_line(shown)}" if shown else ""
    detail = gate.detail if repeated else gate.beyond_headline
    lines = [f"{gate.label}: {gate.title}{summary}", *_indented(marked(detail.rstrip()))]
    lines.append(f"  rerun it with: {_command(command, gate.label, rerun)}")
    return "\n".join(lines)


def _indented(text: str) -> list[str]:
    """The first lines of a text, cut to what is fit to be printed."""
    lines = text.rstrip().splitlines()
    shown = [f"  {_cut(line)}" for line in lines[:_MOST_LINES]]
    left_out = len(lines) - len(shown)
    return [*shown, f"  ... and {left_out} more lines"] if left_out else shown


def _cut(line: str) -> str:
    return shortened(line, _MOST_COLUMNS)


def _command(command: str, label: Label, flags: Sequence[str]) -> str:
    afresh = () if command == "build" else ("--nocache_test_results",)
    return shlex.join(["kabuild", command, *flags, *afresh, str(label)])
