"""The gates of a task that were asked for, also those that left no record.

A gate that an earlier one stopped, or the machine, has no action in a manifest. Without it, whoever
fails everywhere would seem never to have been asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kabuild.model.options import GATES, ON_REQUEST
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.report.scoreboard import TaskRow

_ORDER = (*GATES, *ON_REQUEST)

Said = Mapping[str, Mapping[str, Any]]
"""By gate, what it said: its ``verdict.json``, or as much of it as is known."""


def asked_of(row: TaskRow) -> Said:
    """What each gate that was asked for said, of a task that was judged a moment ago.

    A gate without a verdict says how its action ended instead: INFRA or CANCELLED.
    """
    return {
        cell.gate: {"verdict": cell.word, "reason": cell.reason, "summary": cell.summary}
        for cell in row.cells
    }


def stopped(recorded: Said, asked: Any) -> Said:
    """The usual gates among ``asked`` that one which did not pass stopped, as they would say it.

    ``asked`` is what a bundle says was asked for, where it says so.
    """
    failed = [
        f"{gate}: {said['verdict']}"
        for gate, said in with_asked(recorded, {}).items()
        if said.get("verdict") != Verdict.PASS.value
    ]
    gates = asked if failed and isinstance(asked, list) else []
    usual = [gate for gate in GATES if gate in gates and gate not in recorded]
    skipped = (GateVerdict.skipped(gate, failed[0]) for gate in usual)
    return {
        one.gate: {"verdict": one.verdict.value, "reason": one.reason, "summary": one.summary}
        for one in skipped
    }


def with_asked(recorded: Said, asked: Any) -> Said:
    """The recorded gates and, in the order of judging, those that only ``asked`` has.

    That may be ``gates`` of a ``score.json``, which in a bundle anybody may have written: what is
    not well-formed in it does not count.
    """
    known = asked if isinstance(asked, Mapping) else {}
    told = {gate: said for gate, said in known.items() if isinstance(said, Mapping)}
    gates = {**told, **recorded}
    ordered = sorted(gates, key=lambda gate: _ORDER.index(gate) if gate in _ORDER else len(_ORDER))
    return {gate: gates[gate] for gate in ordered}
