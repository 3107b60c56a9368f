"""Takes timed samples of both sides, and verifies and audits all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from base.program import Batch, CandidateFault, MachineFault
from terms.reasons import Reason
from truth.assessment import Call, Tensors
from truth.judge import Case, Judge
from truth.side import Running, Side

from perf.asides import Asides, epoch
from perf.audit import Clock
from perf.baseline_fault import baseline_fault
from perf.plan import SIDES, Drawn, Plan, Round, Series, SideName, Turn
from perf.process import Process, verify

STAGE = "perf"
EMPTY_BATCHES = 5


class _LeftOut(Exception):  # noqa: N818 (an event, no error of ours)
    """A process failed in a batch in which a call was left out."""


class Meter:
    """Runs rounds. A round runs one fresh process for each side, one after the other.

    They do not run at once, because a waiting process could slow down the other side's. ``draw`` is
    randomness of this judging alone: a candidate could derive seeds that follow from the public
    salt and its own file, and compute results before it is timed. Each batch is read at most
    ``readings`` times, until one reading is quiet.

    Attributes:
        asides: the untimed batches of the processes, from the first round on; None for none.
        warm: by config, the readings of calls repeated on the same inputs, one from each process.
            A config whose batches have only one call has none.
    """

    def __init__(
        self, judge: Judge, clock: Clock, draw: int, *, warm: bool = False, readings: int = 1
    ) -> None:
        self.warm: dict[str, Series] = {}
        self._takes_warm = warm and judge.repeatable
        self._readings = readings
        self.asides: Asides | None = None
        self._judge = judge
        self._clock = clock
        self._draw_number = draw
        self._draws: list[float] = []

    @property
    def seconds_per_call(self) -> float:
        """The judge's seconds per call: to draw it, and to verify both sides."""
        return 3.0 * statistics.median(self._draws)

    def round(self, number: int, plans: Sequence[Plan], samples: int) -> Round:
        """Run one process a side through all ``plans``; returns samples by config name and side.

        The baseline goes first in even rounds, the candidate in odd ones (ABBA). Raises
        CandidateFault for the candidate's faults, including wrong outputs of timed calls;
        TaskFault for the baseline's; MachineFault if a clock of this machine is broken.
        """
        calls = {plan.config.name: self._draw_all(number, plan, samples) for plan in plans}
        order: Sequence[SideName] = ("baseline", "candidate")
        made: dict[SideName, Process] = {}
        for side in order if number % 2 == 0 else order[::-1]:
            made[side] = self._process(side, number, plans, calls)
        for plan in plans:
            verify(self._judge, plan, made["candidate"], made["baseline"])
            for side in order:
                if warm := made[side].warm.get(plan.config.name):
                    self.warm.setdefault(plan.config.name, Series()).of(side).append(warm)
        return {
            plan.config.name: {side: made[side].samples[plan.config.name] for side in order}
            for plan in plans
        }

    def _draw_all(self, number: int, plan: Plan, samples: int) -> Drawn:
        """Draw the calls of one round's processes; a pilot (round 0) has timed calls only."""
        most = plan.most_slots
        turns = []
        for batch in range(1, samples + 1):
            calls = self._draw(number, plan, batch, most)
            turns.append(Turn(dict.fromkeys(SIDES, calls), timed=True))
        drawn = Drawn(self._draw(number, plan, 0, 1), turns)
        if not number:
            return drawn
        if self._takes_warm and most > 1:
            drawn.repeated.extend(self._draw(number, plan, samples + 1, 1))
        if self.asides is None:
            return drawn
        most = min(plan.slots_of(side) for side in SIDES)
        parts = self.asides.batches(plan.config, most)
        for part in range(parts):
            odd = self.asides.among(number, plan.config, most, part, parts)
            place = self.asides.place(number, plan.config, samples + part, part)
            batch = samples + 2 + part
            turns.insert(place, self._odd_turn(self.asides, number, plan, batch, odd))
        return replace(drawn, after=self.asides.between(number, plan.config))

    def _odd_turn(
        self, asides: Asides, number: int, plan: Plan, batch: int, odd: Sequence[Call]
    ) -> Turn:
        """An untimed batch of the usual size, with ``odd`` calls in it, equal for both sides."""
        usual = self._draw(number, plan, batch, plan.most_slots - len(odd))
        calls = {
            side: asides.mixed(
                number, plan.config, [*odd, *usual[: plan.slots_of(side) - len(odd)]]
            )
            for side in SIDES
        }
        return Turn(calls, timed=False)

    def _draw(self, number: int, plan: Plan, batch: int, size: int, attempt: int = 0) -> list[Call]:
        """Draw inputs that no earlier call had."""
        shared = epoch(self._draw_number, number)
        first = ((shared << 4 | attempt) << 8 | batch) << 16
        calls = []
        for slot in range(size):
            before = time.monotonic()
            calls.append(
                self._judge.call(Case(STAGE, plan.config, round=first + slot, epoch=shared))
            )
            self._draws.append(time.monotonic() - before)
        return calls

    def _process(
        self, side: SideName, number: int, plans: Sequence[Plan], calls: Mapping[str, Drawn]
    ) -> Process:
        try:
            return self._processed(side, number, plans, calls)
        except _LeftOut:  # it waits for its kernels, which is allowed
            self._judge.proof.stop()
            return self._processed(side, number, plans, calls)

    def _processed(
        self, side: SideName, number: int, plans: Sequence[Plan], calls: Mapping[str, Drawn]
    ) -> Process:
        made = Process(side, number)
        try:
            with self._side(side).running() as runner:
                for plan in plans:
                    self._time(made, runner, plan, calls[plan.config.name])
        except CandidateFault as fault:
            if side == "baseline":
                raise baseline_fault(self._judge.baseline.program, fault) from fault
            raise
        return made

    def _time(self, made: Process, runner: Running, plan: Plan, calls: Drawn) -> None:
        slots = plan.slots_of(made.side)
        runner.load(plan.config, slots)
        made.add(plan, calls.first, runner.batch(_inputs(calls.first)))
        # Both sides run them: a process that has just slept gets a busy processor sooner.
        empty = [runner.empty() for _ in range(EMPTY_BATCHES)]
        if made.side == "baseline":
            for nothing in empty:
                self._clock.calibrate(nothing)
        for index, turn in enumerate(calls.turns, start=1):
            batch = turn.calls_of(made.side, slots)
            if turn.timed:
                self._time_batch(made, runner, plan, index, batch)
            else:
                self._run_odd(made, runner, plan, batch)
        if calls.repeated:
            self._time_repeated(made, runner, plan, calls.repeated)
        if calls.after and made.side == "candidate":
            runner.load(calls.after.config, len(calls.after.calls))
            ran = runner.batch(_inputs(calls.after.calls)).outputs
            made.after.setdefault(plan.config.name, []).append((calls.after, ran))

    def _run_odd(self, made: Process, runner: Running, plan: Plan, calls: Sequence[Call]) -> None:
        """Run an untimed batch; for the candidate, one of its calls is the proof."""
        proof = self._judge.proof
        place = proof.place(calls) if made.side == "candidate" else None
        try:
            outputs = list(runner.batch(_inputs(calls), place).outputs)
        except CandidateFault as fault:
            told = place is None or fault.reason is Reason.KERNEL_BYPASSED
            raise fault if told else _LeftOut from fault
        rest = list(calls)
        if place is not None:
            proof.check(rest.pop(place), outputs.pop(place))
        made.add_odd(plan, rest, outputs)

    def _time_repeated(
        self, made: Process, runner: Running, plan: Plan, calls: Sequence[Call]
    ) -> None:
        """Time one call repeated as often as a batch has calls, so that its data is in the caches.

        A candidate may reuse its result, so this time decides nothing. The final outputs are
        verified like any other.
        """
        result = runner.repeat(calls[0].inputs, plan.slots_of(made.side))
        self._audit(made.side, plan, result)
        made.add(plan, calls, result)
        made.time_repeated(plan, result)

    def _time_batch(
        self, made: Process, runner: Running, plan: Plan, index: int, calls: Sequence[Call]
    ) -> None:
        """Time one batch by the judge's clock. Raises CandidateFault for a provably false report.

        If it is read several times, the shortest reading counts, for either side.
        """
        taken: list[Batch] = []
        while len(taken) < self._readings and not any(map(self._clock.quiet, taken)):
            if taken:
                calls = self._draw(made.number, plan, index, len(calls), len(taken))
            taken.append(batch := runner.batch(_inputs(calls)))
            made.add(plan, calls, batch)
            self._audit(made.side, plan, batch)
        made.time(plan, min(taken, key=lambda batch: batch.wall_ns), len(taken))

    def _audit(self, side: SideName, plan: Plan, batch: Batch) -> None:
        if impossible := self._clock.impossible(batch):
            if side == "baseline":
                raise MachineFault(f"a clock of this machine is broken: {impossible}")
            raise CandidateFault(Reason.CLOCK_MISMATCH, f"{impossible}\n  in {plan.config.name}")

    def _side(self, side: SideName) -> Side:
        return self._judge.candidate if side == "candidate" else self._judge.baseline


def _inputs(calls: Sequence[Call]) -> list[Tensors]:
    return [call.inputs for call in calls]
