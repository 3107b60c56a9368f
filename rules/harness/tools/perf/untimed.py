"""Runs the untimed batches of a timed process: other values in a batch, then other sizes.

``perf.asides`` chooses them and says why they exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from base.program import Batch, Config, Gated
from truth.assessment import Call, Tensors, larger
from truth.judge import Judge
from truth.stage import require

from perf.asides import Asides
from perf.gate_samples import Doubtful, Odd, Taken
from perf.gate_turn import Held, Turn, inputs
from perf.plan import SideName
from perf.verification import Look, Verified, Verifier

ODD = 6  # calls on other values in one batch
_BATCH = 254  # the number of the batch that contains them


class Meter(Protocol):
    """The part of ``GatedMeter`` that is used here."""

    def draw(
        self, number: int, config: Config, batch: int, size: int, attempt: int = 0
    ) -> list[Call]:
        """Fresh inputs."""

    def gated(self, runner: Held, calls: Sequence[Call], *, at_once: bool = False) -> Gated | None:
        """A batch behind the gate; None if that is not possible."""

    def verify(
        self, verified: Verified, side: SideName, calls: Sequence[Call], made: Batch | Gated
    ) -> None:
        """Verify the outputs of a batch."""


class Untimed:
    """Runs untimed batches and checks their results."""

    def __init__(self, asides: Asides, judge: Judge, meter: Meter) -> None:
        self._asides = asides
        self._judge = judge
        self._assessor = judge.assessor
        self._meter = meter
        self._verifier = Verifier(judge)

    def place(self, turn: Turn) -> int:
        """The place of the untimed batch among the first batches."""
        return self._asides.place(turn.number, turn.config, 1)

    def mix(self, turn: Turn) -> None:
        """Run batches like a timed one, behind the gate, but partly on other values."""
        most = min(ODD, turn.slots)
        parts = self._asides.batches(turn.config, most)
        for part in range(parts):
            odd = self._asides.among(turn.number, turn.config, most, part, parts)
            self._mix(turn, odd, _BATCH - part)

    def _mix(self, turn: Turn, odd: Sequence[Call], batch: int) -> None:
        usual = self._meter.draw(turn.number, turn.config, batch, turn.slots - len(odd))
        calls = self._asides.mixed(turn.number, turn.config, [*odd, *usual])
        made: Batch | Gated | None = None
        if turn.held:
            made = self._meter.gated(turn.runner, calls)
        made = made or turn.runner.batch(inputs(calls))
        by_call = {id(call): found for call, found in zip(calls, made.outputs, strict=True)}
        plain = replace(made, outputs=tuple(by_call[id(call)] for call in usual))
        self._meter.verify(turn.taken.verified, turn.side, usual, plain)
        ran = [by_call[id(call)] for call in odd]
        for call, outputs, look in zip(odd, ran, self._verifier.look(odd, ran), strict=True):
            turn.taken.odd.append(self._noted(turn, call, outputs, look))

    def _noted(self, turn: Turn, call: Call, outputs: Tensors, look: Look) -> Odd:
        """What to keep of a call. Raises CandidateFault if it is certain that it is wrong."""
        own = look.excess if turn.side == "baseline" else {}
        if self._verifier.is_right(look, own):
            return Odd(look.excess)
        if not look.decides and (right := self._assessor.excesses_if_right(call, outputs)):
            return Odd(right)
        if self._assessor.sampled or (turn.side == "candidate" and turn.beside is None):
            copies = {name: made.clone() for name, made in outputs.items()}
            return Odd({}, Doubtful(call, copies, look))
        if turn.beside is None:
            return Odd(self._own(call, outputs))
        self._refuse(Doubtful(call, outputs, look), turn.beside, len(turn.taken.odd))
        return Odd({})

    def follow(self, turn: Turn) -> None:
        """Run calls of another size. Raises CandidateFault if they are wrong."""
        aside = self._asides.between(turn.number, turn.config)
        if aside is None or turn.side == "baseline":
            return
        turn.runner.load(aside.config, len(aside.calls))
        ran = turn.runner.batch(inputs(aside.calls)).outputs
        looks = self._verifier.look(aside.calls, ran)
        for call, outputs, look in zip(aside.calls, ran, looks, strict=True):
            if not self._verifier.is_right(look, aside.slack):
                require(
                    self._judge, call, outputs, aside.slack, "an untimed call between timed batches"
                )

    def refuse(self, candidate: Taken, baseline: Taken) -> None:
        """Raise CandidateFault if calls on other values are wrong but the baseline's are not."""
        for index, mine in enumerate(candidate.odd):
            if mine.doubtful is not None:
                self._refuse(mine.doubtful, baseline, index)

    def _refuse(self, mine: Doubtful, baseline: Taken, index: int) -> None:
        allowed = self._allowed(baseline, index)
        if allowed is None or self._verifier.is_right(mine.look, allowed):
            return
        if self._assessor.defined(mine.call):
            what = "an untimed call in a timed batch"
            require(self._judge, mine.call, mine.outputs, allowed, what)

    def _allowed(self, baseline: Taken, index: int) -> Mapping[str, float] | None:
        """The baseline's errors on a call and on timed ones; None if it is wrong on that call."""
        usual = baseline.verified.excess
        if index >= len(baseline.odd):
            return usual
        theirs = baseline.odd[index]
        off = theirs.excess
        if theirs.doubtful is not None:
            off = self._own(theirs.doubtful.call, theirs.doubtful.outputs)
        return None if off is None else larger(off, usual)

    def _own(self, call: Call, outputs: Tensors) -> Mapping[str, float] | None:
        """The errors of a call of the baseline; None if it is wrong despite slack for them."""
        off = self._assessor.excesses(call, outputs)
        return off if self._assessor.assess(call, outputs, off).ok else None
