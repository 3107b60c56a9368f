"""Chooses the part of a model for the next session of an agent, from the recorded facts alone.

A session goes to the part that can still save most of the model's time: its share, times what is
left between its speedup so far and its roof. Sessions in a row without progress divide that, so
that a part which resists waits for others. Nothing here runs, reads or writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Left(Enum):
    """Why no session goes to a part any more."""

    NEAR_ROOF = "near_roof"
    FAST_ENOUGH = "fast_enough"
    STALLED = "stalled"
    PART_BUDGET = "part_budget"


class End(Enum):
    """Why there are no more sessions."""

    PARTS_DONE = "parts_done"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    BROKEN = "broken"


@dataclass(frozen=True)
class Rules:
    """When to move on.

    Attributes:
        budget: seconds of all sessions with their gates.
        part_budget: seconds of those of one part.
        session: the most seconds of one session; none begins that might exceed a budget.
        stalled: sessions in a row without progress.
        progress: how many times as fast as before a kernel has to be.
        near_roof: the share of its roof that a part reaches.
        enough: the speedup of a part.
    """

    budget: float
    part_budget: float
    session: float
    stalled: int = 3
    progress: float = 1.01
    near_roof: float = 0.9
    enough: float = 2.0


@dataclass(frozen=True)
class Attempt:
    """What is recorded of one session.

    Attributes:
        speedup: of its kernel over PyTorch in the model's own shapes; None if it did not pass, or
            may not be faster.
        seconds: of the session and its gates, when they ran.
        least: whether the speedup is the lower end of a wide interval, all that is known of it.
    """

    speedup: float | None
    seconds: float
    least: bool = False


@dataclass(frozen=True)
class Standing:
    """How far a part is.

    Attributes:
        share: of the time of the model's operators, before anything was replaced.
        roof_share: the least time that the machine allows, as a share of the part's time.
        failed: sessions in a row without progress.
        best: the number of the fastest session, from 1; 0 if none is faster than PyTorch.
        least: whether the speedup is only the least that it may be.
    """

    name: str
    share: float
    roof_share: float
    sessions: int = 0
    failed: int = 0
    seconds: float = 0.0
    speedup: float = 1.0
    best: int = 0
    least: bool = False

    @property
    def of_roof(self) -> float:
        """The share of its roof that it reaches now; at most 1."""
        return min(1.0, self.roof_share * self.speedup)

    @property
    def taken(self) -> float:
        """What it takes now, as a share of the model's time before."""
        return self.share / self.speedup

    @property
    def saving(self) -> float:
        """What it would save at its roof, as a share of the model's time before."""
        return self.taken * (1.0 - self.of_roof)

    @property
    def hope(self) -> float:
        """What a session is worth: the saving, divided among sessions without progress."""
        return self.saving / (1 + self.failed)

    def after(self, attempt: Attempt, rules: Rules) -> Standing:
        """The part after one more session."""
        number = self.sessions + 1
        found = attempt.speedup or 0.0
        helped = found >= self.speedup * rules.progress
        is_best = found > self.speedup
        return replace(
            self,
            sessions=number,
            failed=0 if helped else self.failed + 1,
            seconds=self.seconds + attempt.seconds,
            speedup=max(self.speedup, found),
            best=number if is_best else self.best,
            least=attempt.least if is_best else self.least,
        )

    def left(self, rules: Rules) -> Left | None:
        """Why no session goes to it any more; None if one may."""
        if self.of_roof >= rules.near_roof:
            return Left.NEAR_ROOF
        if self.speedup >= rules.enough:
            return Left.FAST_ENOUGH
        if self.failed >= rules.stalled:
            return Left.STALLED
        if self.seconds + rules.session > rules.part_budget:
            return Left.PART_BUDGET
        return None


@dataclass(frozen=True)
class Next:
    """The next session.

    Attributes:
        gain: the speedup of the whole model, from now, if the part reached its roof.
    """

    part: Standing
    gain: float


def decide(parts: Sequence[Standing], rules: Rules) -> Next | End:
    """The part of the next session, or why there is none; of equals, the first by name."""
    open_ = [part for part in parts if part.left(rules) is None]
    if not open_:
        return End.PARTS_DONE
    if spent(parts) + rules.session > rules.budget:
        return End.BUDGET
    part = min(open_, key=lambda one: (-one.hope, one.name))
    return Next(part, gain(parts, part))


def spent(parts: Iterable[Standing]) -> float:
    """The seconds of all sessions."""
    return math.fsum(part.seconds for part in parts)


def time_now(parts: Iterable[Standing]) -> float:
    """The time of the model's operators now, as a share of what it was, by Amdahl's law."""
    return max(1.0 - math.fsum(part.share - part.taken for part in parts), 1e-9)


def gain(parts: Iterable[Standing], part: Standing) -> float:
    """The speedup of the model's operators from now if ``part`` reached its roof."""
    now = time_now(parts)
    return now / max(now - part.saving, 1e-9)
