"""Takes timed samples of both sides, every one of them verified and audited."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from base.program import Batch, CandidateFault, Config, MachineFault, Reason
from truth.assessment import Call, Tensors
from truth.judge import Case, Judge, Running, Side
from truth.oracle import TaskFault

from perf.audit import Clock

SideName = Literal["candidate", "baseline"]
SIDES: tuple[SideName, SideName] = ("candidate", "baseline")
STAGE = "perf"
EMPTY_BATCHES = 5
ATTEMPTS = 8
CALM = 3  # readings that are worth waiting for a quiet moment; then a busy machine explains
LISTENS = (4, ATTEMPTS)  # attempts before whose judgement the machine's noise is heard again
LISTENED = 3


@dataclass(frozen=True)
class Plan:
    """How one config is timed.

    Attributes:
        slots: calls of a batch; the candidate's, where the baseline has others.
        cold: whether that defeats the caches.
        baseline_slots: the baseline's; 0 for as many. A side that is much slower gets fewer, so
            that the other's batches are no shorter than its own.
    """

    config: Config
    slots: int
    cold: bool = False
    baseline_slots: int = 0

    def slots_of(self, side: SideName) -> int:
        """Calls of one side's batches."""
        return self.baseline_slots or self.slots if side == "baseline" else self.slots

    @property
    def most_slots(self) -> int:
        """Calls of the larger batch."""
        return max(self.slots, self.baseline_slots)


@dataclass(frozen=True)
class Sample:
    """One timed batch. ``attempts`` counts the readings taken until one was believable.

    ``waited_ns`` is how long the judge and the runner wanted a processor that others had.
    """

    slots: int
    reported_ns: int
    wall_ns: int
    attempts: int = 1
    waited_ns: int = 0

    @property
    def per_call_ns(self) -> float:
        """The reported time of one call."""
        return self.reported_ns / self.slots


@dataclass(frozen=True)
class Drawn:
    """The calls of one process for one config.

    Attributes:
        first: before anything is timed.
        timed: of each batch.
        repeated: made again and again in the last batch; none where warm calls are not timed.
    """

    first: list[Call]
    timed: list[list[Call]]
    repeated: list[Call] = field(default_factory=list)


Round = Mapping[str, Mapping[SideName, list[Sample]]]  # by config and side


@dataclass
class Series:
    """All samples of one config, by side and process."""

    candidate: list[list[Sample]] = field(default_factory=list)
    baseline: list[list[Sample]] = field(default_factory=list)

    def of(self, side: SideName) -> list[list[Sample]]:
        """The processes of one side."""
        return self.candidate if side == "candidate" else self.baseline


class Meter:
    """Runs rounds: in each, one fresh process a side, and no two at the same time.

    A process that waits could slow down the other side's. ``draw`` is randomness of this
    judging alone: seeds that follow from the public salt and the candidate's own file could be
    derived by it too, and what is to be computed under the clock be computed before. Each batch is
    read ``readings`` times at most, until one reading is quiet.

    Attributes:
        baselines: by config, what is timed in place of the judge's baseline.
        warm: by config, the readings of calls that were repeated on the same inputs, one from each
            process; none of a config whose batches have one call only.
        graphs: by config and side, ns a call where launches were recorded and run as one graph;
            None to record nothing. It is shown and decides nothing.
    """

    def __init__(
        self, judge: Judge, clock: Clock, draw: int, *, warm: bool = False, readings: int = 1
    ) -> None:
        self.warm: dict[str, Series] = {}
        self._takes_warm = warm
        self._readings = readings
        self.baselines: dict[str, Side] = {}
        self.graphs: dict[str, dict[str, float]] | None = None
        self._judge = judge
        self._clock = clock
        self._draw_number = draw
        self._draws: list[float] = []

    @property
    def seconds_per_call(self) -> float:
        """What one call costs the judge: about as much to draw as to verify, on both sides."""
        return 3.0 * statistics.median(self._draws)

    def round(self, number: int, plans: Sequence[Plan], samples: int) -> Round:
        """One process a side through all ``plans``: the samples by config name and side.

        The baseline goes first in even rounds, the candidate in odd ones (ABBA). Raises
        CandidateFault for the candidate's faults, wrong outputs of timed calls included;
        TaskFault for the baseline's; MachineFault where a clock of this machine is broken.
        """
        calls = {plan.config.name: self._draw_all(number, plan, samples) for plan in plans}
        order: Sequence[SideName] = ("baseline", "candidate")
        made: dict[SideName, _Process] = {}
        for side in order if number % 2 == 0 else order[::-1]:
            made[side] = self._process(side, number, plans, calls)
        for plan in plans:
            self._verify(plan, made["candidate"], made["baseline"])
            for side in order:
                if warm := made[side].warm.get(plan.config.name):
                    self.warm.setdefault(plan.config.name, Series()).of(side).append(warm)
        return {
            plan.config.name: {side: made[side].samples[plan.config.name] for side in order}
            for plan in plans
        }

    def _draw_all(self, number: int, plan: Plan, samples: int) -> Drawn:
        """The calls of a process of either side; a pilot (round 0) has none that are repeated."""
        most = plan.most_slots
        timed = [self._draw(number, plan, batch, most) for batch in range(1, samples + 1)]
        drawn = Drawn(self._draw(number, plan, 0, 1), timed)
        if self._takes_warm and number and most > 1:
            drawn.repeated.extend(self._draw(number, plan, samples + 1, 1))
        return drawn

    def _draw(self, number: int, plan: Plan, batch: int, size: int, attempt: int = 0) -> list[Call]:
        """Inputs that no call had before."""
        first = (((self._draw_number << 16 | number) << 4 | attempt) << 8 | batch) << 16
        calls = []
        for slot in range(size):
            before = time.monotonic()
            calls.append(self._judge.call(Case(STAGE, plan.config, round=first + slot)))
            self._draws.append(time.monotonic() - before)
        return calls

    def _process(
        self, side: SideName, number: int, plans: Sequence[Plan], calls: Mapping[str, Drawn]
    ) -> _Process:
        made = _Process(side, number)
        try:
            with _running(self._side(side, plans[0])) as runner:
                for plan in plans:
                    self._time(made, runner, plan, calls[plan.config.name])
        except CandidateFault as fault:
            if side == "baseline":
                raise TaskFault(f"the baseline fails when timed: {fault}") from fault
            raise
        return made

    def _time(self, made: _Process, runner: Running, plan: Plan, calls: Drawn) -> None:
        slots = plan.slots_of(made.side)
        runner.load(plan.config, slots)
        made.add(plan, calls.first, runner.batch(_inputs(calls.first)))
        if made.side == "baseline":
            for _ in range(EMPTY_BATCHES):
                self._clock.calibrate(runner.empty())
        for index, batch in enumerate(calls.timed, start=1):
            if made.side == "baseline":
                self._time_trusted(made, runner, plan, batch[:slots])
            else:
                self._time_audited(made, runner, plan, index, batch[:slots])
        if calls.repeated:
            self._time_repeated(made, runner, plan, calls.repeated)
        if self.graphs is not None and made.number == 1:
            self._record(made.side, runner, plan, calls.timed[-1][:slots])

    def _time_repeated(
        self, made: _Process, runner: Running, plan: Plan, calls: Sequence[Call]
    ) -> None:
        """The same call as often as a batch has calls, so that what it needs is in the caches.

        A candidate may well remember its result, hence nothing is decided by this time. What is
        in the outputs in the end is verified like any other.
        """
        result = runner.repeat(calls[0].inputs, plan.slots_of(made.side))
        if impossible := self._clock.impossible(result):
            if made.side == "baseline":
                raise MachineFault(_broken(impossible))
            raise CandidateFault(Reason.CLOCK_MISMATCH, impossible)
        made.add(plan, calls, result)
        made.time_repeated(plan, result)

    def _record(self, side: SideName, runner: Running, plan: Plan, calls: Sequence[Call]) -> None:
        """Time the calls once more as one graph: the last thing that the runner is asked.

        Not every candidate can be recorded, and none has to be: faults count for nothing.
        """
        assert self.graphs is not None
        try:
            batch = runner.replay(_inputs(calls))
        except CandidateFault:
            return
        if batch and self._judge.assessor.assess(calls[0], batch.outputs[0], {}).ok:
            found = self.graphs.setdefault(plan.config.name, {})
            found[side] = batch.reported_ns / len(calls)

    def pilot(self, plan: Plan, samples: int) -> list[Sample]:
        """The baseline alone, to compare it with others. Raises TaskFault."""
        calls = {plan.config.name: self._draw_all(0, plan, samples)}
        made = self._process("baseline", 0, [plan], calls)
        return made.samples[plan.config.name]

    def _time_trusted(
        self, made: _Process, runner: Running, plan: Plan, calls: Sequence[Call]
    ) -> None:
        """A batch of the baseline, which also shows how noisy the machine is."""
        taken: list[Batch] = []
        while len(taken) < self._readings and not any(map(self._clock.quiet, taken)):
            taken.append(runner.batch(_inputs(calls)))
            if impossible := self._clock.impossible(taken[-1]):
                raise MachineFault(_broken(impossible))
            self._clock.trust(taken[-1])
        best = min(taken, key=self._clock.unexplained_ns)
        made.add(plan, calls, best)
        made.time(plan, best, len(taken))

    def _time_audited(
        self, made: _Process, runner: Running, plan: Plan, index: int, calls: Sequence[Call]
    ) -> None:
        """A batch of the candidate whose time the judge's clock confirms.

        Noise comes and goes, and a lie that pays comes every time: a doubtful reading is taken
        again, with inputs of its own, since results that were kept from it would be fast. When
        doubt stays, a machine that was busy with other things, as the kernel counts, explains it;
        else the baseline is asked how noisy the machine is now, and a candidate whose readings
        are all worse than all of the baseline's is rejected. None of this is a present: time
        that only an excuse explains is charged like any other.
        """
        best: Batch | None = None
        for attempt in range(1, ATTEMPTS + 1):
            result = runner.batch(_inputs(calls))
            made.add(plan, calls, result)
            if impossible := self._clock.impossible(result):
                raise CandidateFault(Reason.CLOCK_MISMATCH, impossible)
            best = min(best or result, result, key=self._clock.unexplained_ns)
            busy = attempt >= CALM
            if attempt in LISTENS and self._clock.complaint(best, busy=busy):
                self._listen(plan, calls)
            complaint = self._clock.complaint(best, busy=busy)
            if not complaint and (attempt >= self._readings or self._clock.quiet(best)):
                made.time(plan, best, attempt)
                return
            calls = self._draw(made.number, plan, index, plan.slots, attempt)
        raise CandidateFault(Reason.CLOCK_MISMATCH, f"{complaint}\n  in {plan.config.name}")

    def _listen(self, plan: Plan, calls: Sequence[Call]) -> None:
        """Time the baseline for the machine's noise alone, the candidate's process frozen."""
        with _running(self._side("baseline", plan)) as runner:
            slots = plan.slots_of("baseline")
            runner.load(plan.config, slots)
            for _ in range(LISTENED):
                self._clock.trust(runner.batch(_inputs(calls[:slots])))

    def _verify(self, plan: Plan, candidate: _Process, baseline: _Process) -> None:
        """Judge all outputs of the candidate beside the baseline's own error."""
        slack: dict[str, float] = {}
        for call, outputs in baseline.ran[plan.config.name]:
            for output, excess in self._judge.assessor.excesses(call, outputs).items():
                slack[output] = max(excess, slack.get(output, 0.0))
        for call, outputs in candidate.ran[plan.config.name]:
            finding = self._judge.assessor.assess(call, outputs, slack)
            if finding.reason is not None:
                detail = finding.detail or finding.reason.value
                where = f"in a timed call of {plan.config.name}"
                raise CandidateFault(finding.reason, f"{detail}\n  {where}")

    def _side(self, side: SideName, plan: Plan) -> Side:
        if side == "candidate":
            return self._judge.candidate
        return self.baselines.get(plan.config.name, self._judge.baseline)


class _Process:
    """What one process gave: per config its samples, and every call with its outputs."""

    def __init__(self, side: SideName, number: int) -> None:
        self.side = side
        self.number = number
        self.samples: dict[str, list[Sample]] = {}
        self.warm: dict[str, list[Sample]] = {}
        self.ran: dict[str, list[tuple[Call, Tensors]]] = {}

    def add(self, plan: Plan, calls: Sequence[Call], batch: Batch) -> None:
        """Keep the outputs of a batch, to be verified."""
        kept = self.ran.setdefault(plan.config.name, [])
        kept += zip(calls, batch.outputs, strict=True)

    def time(self, plan: Plan, batch: Batch, attempts: int) -> None:
        """Keep the times of a batch."""
        sample = _sample(plan.slots_of(self.side), batch, attempts)
        self.samples.setdefault(plan.config.name, []).append(sample)

    def time_repeated(self, plan: Plan, batch: Batch) -> None:
        """Keep the times of a batch of one call again and again."""
        self.warm[plan.config.name] = [_sample(plan.slots_of(self.side), batch, 1)]


def _sample(slots: int, batch: Batch, attempts: int) -> Sample:
    return Sample(slots, batch.reported_ns, batch.wall_ns, attempts, batch.waited_ns)


def _broken(impossible: str) -> str:
    return f"a clock of this machine is broken: {impossible}"


def _inputs(calls: Sequence[Call]) -> list[Tensors]:
    return [call.inputs for call in calls]


@contextmanager
def _running(side: Side) -> Iterator[Running]:
    """A fresh runner that ends with the block. Raises CandidateFault for a bad end."""
    with side.spending():
        runner = side.open()
        try:
            yield runner
            runner.close()
        finally:
            runner.kill()
