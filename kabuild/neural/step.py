"""Where the time of a training step goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kabuild.neural.values import count, number, share, text
from kabuild.report.table import text_table
from kabuild.report.times import nanoseconds

_MOST = 20_000
_LONGEST = 40


@dataclass(frozen=True)
class Taken:
    """A phase of a training step, or with ``name`` an operator in it."""

    phase: str
    name: str
    calls: int
    seconds: float
    share: float

    @classmethod
    def read(cls, value: Mapping[str, Any], phase: str, name: str, calls: int) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        figures = (number(value["seconds"]), share(value["share"]))
        return cls(text(phase), text(name), count(calls), *figures)


@dataclass(frozen=True)
class TrainingStep:
    """A training step: forward, backward and optimiser, and their operators, slowest first."""

    seconds: float
    phases: tuple[Taken, ...]
    operators: tuple[Taken, ...]

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        if len(facts["operators"]) > _MOST:
            raise ValueError("too many operators")
        phases = tuple(Taken.read(row, row["name"], "", 1) for row in facts["phases"])
        operators = tuple(
            Taken.read(row, row["phase"], row["name"], row["calls"]) for row in facts["operators"]
        )
        return cls(number(facts["seconds"]), phases, operators)

    def __str__(self) -> str:
        """For people: one line."""
        phases = ", ".join(f"{row.phase} {row.share:.0%}" for row in self.phases)
        return f"a training step: {nanoseconds(self.seconds * 1e9)}: {phases}"


def render_step(step: TrainingStep, most: int = 20) -> str:
    """The step as text: a line, and a table of the ``most`` slowest operators."""
    rows = [("phase", "operator", "calls", "time", "share")]
    rows += [
        (
            row.phase,
            row.name if len(row.name) <= _LONGEST else f"{row.name[: _LONGEST - 1]}…",
            str(row.calls),
            nanoseconds(row.seconds * 1e9),
            f"{row.share:.1%}",
        )
        for row in step.operators[:most]
    ]
    lines = [str(step)]
    if step.operators:
        lines.append(text_table(rows, right=(2, 3, 4)))
    if len(step.operators) > most:
        lines.append(f"and {len(step.operators) - most} more operators; --json has all")
    return "\n".join(lines)
