"""What stopped actions, each cause once, however many it stopped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kabuild.base.listing import abridged
from kabuild.model.result import Outcome, Settled

_BEGIN, _END, _MOST_COLUMNS = 2, 2, 200
"""Of what an action said, the lines that make one line: the first, and the last, for a traceback
ends with what it is about."""

_NUMBER_OF_ONE = re.compile(r"(?=[\w-]*\d)[\w-]{12,}")
"""What identifies a request or a session: it differs where the cause does not."""


@dataclass(frozen=True)
class Cause:
    """Why one or several actions broke by themselves; ``actions`` are in the order of settling."""

    actions: tuple[Settled, ...]

    @property
    def first(self) -> Settled:
        """The one whose message is told."""
        return self.actions[0]

    @property
    def more(self) -> str:
        """How many it stopped besides the first: ``and 3 more``; empty without any."""
        return f"and {len(self.actions) - 1} more" if self.actions[1:] else ""

    @property
    def title(self) -> str:
        """The first by name, and how many more."""
        return f"{self.first.label} {self.more}".rstrip()

    @property
    def others(self) -> str:
        """The other ones by name, as far as they can be taken in at a glance; empty without any."""
        others = abridged([str(action.label) for action in self.actions[1:]])
        return f"so it is with {others}" if others else ""


def broken(settled: Iterable[Settled]) -> int:
    """How many actions broke by themselves without a result: they were neither cached nor run."""
    found = [action for cause in causes(settled) for action in cause.actions]
    return sum(action.outcome is Outcome.INFRA or action.result is None for action in found)


def causes(settled: Iterable[Settled]) -> list[Cause]:
    """The causes of all that was not made, in the order in which they came.

    What only follows from another one's end is none. Two are the same where all that their
    messages differ by is the action's own name, or the number of a request.
    """
    found: dict[tuple[Outcome, str, str], list[Settled]] = {}
    for item in settled:
        if is_broken(item) and item.stopped_by is None:
            said = _NUMBER_OF_ONE.sub("", item.message.replace(str(item.label), ""))
            found.setdefault((item.outcome, item.fault, said), []).append(item)
    return [Cause(tuple(items)) for items in found.values()]


def is_broken(settled: Settled) -> bool:
    """Whether an action could not be judged or made, itself or for another one's sake."""
    return settled.outcome in {Outcome.INFRA, Outcome.FAILED}


def in_one_line(text: str) -> str:
    """What a message and the lines below it come to, where there is one line for it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > _BEGIN + _END:
        lines = [*lines[:_BEGIN], "...", *lines[-_END:]]
    return "; ".join(
        line if len(line) <= _MOST_COLUMNS else f"{line[:_MOST_COLUMNS]}..." for line in lines
    )
