"""Times programs on a device behind a gate, with alternating processes of both sides.

No part of a program's time comes from the program's own report. A batch cannot wait behind a gate
if the program needs the device's answer in between. It is then timed as its user would wait for it:
by the judge's clock, host time included.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from base.program import Batch, CandidateFault, Config, Gated
from gpu import session
from truth.assessment import Call
from truth.judge import Case, Judge
from truth.side import Side

from perf import device_state
from perf.asides import Asides, epoch
from perf.baseline_fault import baseline_fault
from perf.checking import Checking
from perf.device_budget import Budget
from perf.gate_samples import (
    DOUBT_NS,
    GATE_CLOCK,
    HOST_CLOCK,
    Empties,
    GateSample,
    SidePlan,
    Taken,
)
from perf.gate_turn import Held, Turn, inputs
from perf.phases import Phases
from perf.plan import SIDES, SideName
from perf.untimed import Untimed
from perf.verification import Verified, Verifier

STAGE = "perf"
EMPTY_BATCHES = 6  # in each process, after a first one
EMPTY_AT_ONCE = 3
FEWER_EMPTY = 3  # times, around calls that take milliseconds and fill the device's memory
TRIES = 2  # attempts to queue a batch: the first may find the host busy or allocate memory
READINGS = 3  # of a batch, while heat slows the device or the judge's processor was elsewhere
MOST_BATCHES = 6
MORE_DOUBTS = 4
AGREEMENT = 0.005  # how far from the median most batches of a process should be at most
_CHECKED = 5  # the number of the batch whose call the task's own check is timed on
_AHEAD = 4  # the number of the first batch of many calls, if they have to differ
_WARM = 255  # the number of the batch that repeats one call


Planned = Callable[[SideName, Held, Config], SidePlan]


class GatedMeter:
    """Times processes.

    ``draw`` is randomness of this judging alone, as for ``perf.measure.Meter``.

    Attributes:
        repeatable: whether a call may be made again in memory that it has been made in.
        modes: by config, the mode in which the baseline is timed, if there are several.
        large: the configs whose calls are too large to keep several, or any beside others.
        empties: the empty batches, whose times are subtracted.
        graphs: by config and side, ns per call with the launches recorded and run as one graph.
            They decide nothing.
        phases: where the seconds went.
    """

    def __init__(
        self, judge: Judge, asides: Asides, held: Budget, *, draw: int, warm: bool, samples: int
    ) -> None:
        self.modes: dict[str, str] = {}
        self.large: frozenset[str] = frozenset()
        self.empties = Empties()
        self.graphs: dict[str, dict[SideName, float]] = {}
        self.phases = Phases()
        self._judge = judge
        self._drawn = draw
        self._number = 0
        self._budget = held
        self.repeatable = judge.repeatable
        self._warm = warm and judge.repeatable
        self._samples = samples
        self._sides: dict[str, Side] = {}
        self._doubted: dict[SideName, int] = dict.fromkeys(SIDES, 0)
        self._checking = Checking(judge)
        self._verifier = Verifier(judge)
        self._untimed = Untimed(asides, judge, self)

    def round(
        self, number: int, configs: Sequence[Config], planned: Planned
    ) -> dict[str, dict[SideName, Taken]]:
        """Run one process for each side, or for each mode of the baseline, through all configs.

        ``planned`` returns the plan of a side and may use the runner. Which side begins alternates,
        unless calls are large: what the candidate's may be off by is then known when they end, so
        that they need not be kept. Raises CandidateFault, TaskFault for the baseline's faults, and
        MachineFault.
        """
        order: Sequence[SideName] = ("baseline", "candidate")
        found: dict[str, dict[SideName, Taken]] = {config.name: {} for config in configs}
        large = self.large & found.keys()
        alternate = number % 2 and not large
        self._number = number
        self._judge.remember(0 if large else self._budget.kept_bytes)  # rounds share no calls
        for side in order[::-1] if alternate else order:
            for group in self._groups(side, configs):
                with self.running(side, group[0]) as runner:
                    for index, config in enumerate(group):
                        plan = planned(side, runner, config)
                        taken = Taken(verified=self.prepare(side, runner, config, plan.slots))
                        beside = found[config.name].get("baseline")
                        turn = Turn(side, number, runner, config, plan, taken, beside)
                        if index == 0:
                            with self.phases.of("calibrate"):
                                self.calibrate(side, runner, config)
                        found[config.name][side] = self._time(turn)
                    if number == 1 and self.repeatable:  # a graph's first run is not timed
                        with self.phases.of("graph"):
                            self._record(side, runner, group, planned, found)
        for config in configs:
            sides = found[config.name]
            where = f"in a timed call of {config.name}"
            with self.phases.of("verify"):
                verified = sides["candidate"].verified, sides["baseline"].verified
                self._verifier.refuse(*verified, where)
                self._untimed.refuse(sides["candidate"], sides["baseline"])
            for taken in sides.values():
                taken.forget()
        return found

    def _groups(self, side: SideName, configs: Sequence[Config]) -> list[list[Config]]:
        if side == "candidate":
            return [list(configs)]
        by_mode: dict[str, list[Config]] = {}
        for config in configs:
            by_mode.setdefault(self.modes.get(config.name, ""), []).append(config)
        return list(by_mode.values())

    @contextmanager
    def running(self, side: SideName, config: Config) -> Iterator[Held]:
        """A fresh runner of a side, in the mode for ``config``, that ends with the block."""
        program = self._side(side, config)
        try:
            with ExitStack() as stack:
                with self.phases.of("start"):
                    runner = stack.enter_context(program.running())
                yield runner  # type: ignore[misc]
                with self.phases.of("end"):
                    stack.close()
        except CandidateFault as fault:
            if side == "baseline":
                raise baseline_fault(self._judge.baseline.program, fault) from fault
            raise
        finally:
            session.give_back()

    def _side(self, side: SideName, config: Config) -> Side:
        if side == "candidate":
            return self._judge.candidate
        mode = self.modes.get(config.name, "")
        if mode not in self._sides:
            self._sides[mode] = self._judge.baseline.in_mode(mode)
        return self._sides[mode]

    def prepare(self, side: SideName, runner: Held, config: Config, slots: int) -> Verified:
        """Load a config and make its first calls, which compile and allocate; not timed."""
        if not runner.has_loaded(config, slots):
            with self.phases.of("load"):
                session.give_back()
                runner.load(config, slots)
        verified = Verified()
        first = self.draw(0, config, 0, 1)
        with self.phases.of("first_calls"):
            made = runner.batch(inputs(first))
        self.verify(verified, side, first, made)
        if slots > 1:  # allocate for many calls now, before any batch waits
            calls = first if self.repeatable else self.draw(0, config, _AHEAD, slots)
            with self.phases.of("first_calls"):
                if self.repeatable:
                    made = runner.repeat(first[0].inputs, slots)
                else:
                    made = runner.batch(inputs(calls))
            self.verify(verified, side, calls, made)
        return verified

    def _time(self, turn: Turn) -> Taken:
        taken = turn.taken
        apart = random.SystemRandom().randrange(self._samples)
        place = self._untimed.place(turn)
        index = 0
        while not self._enough(taken):
            if index == place:
                with self.phases.of("untimed"):
                    self._untimed.mix(turn)
            index += 1
            batch = self._batch(turn, index, at_once=index == apart + 1)
            (taken.at_once if batch.at_once else taken.samples).append(batch)
            self._budget.note()
        if self._warm and turn.slots > 1 and turn.held:
            self._time_repeated(turn)
        with self.phases.of("untimed"):
            self._untimed.follow(turn)
        return taken

    def _enough(self, taken: Taken) -> bool:
        count = len(taken.samples)
        return count >= self._samples and (taken.agree(AGREEMENT) or count >= MOST_BATCHES)

    def _batch(self, turn: Turn, index: int, *, at_once: bool) -> GateSample:
        """Time one verified batch; every reading of it has its own inputs."""
        sample = self._reading(turn, index, 0, at_once=at_once)
        for reading in range(1, READINGS):
            if not (sample.throttled or (sample.doubtful and self._doubts(turn.side))):
                break
            sample = self._reading(turn, index, reading, at_once=at_once)
        return sample

    def _doubts(self, side: SideName) -> bool:
        """Whether a doubtful batch may be read again.

        A candidate that keeps the judge's processor busy could choose among readings. So it gets
        few more than the baseline has had.
        """
        self._doubted[side] += 1
        return side == "baseline" or self._doubted[side] <= self._doubted["baseline"] + MORE_DOUBTS

    def _reading(self, turn: Turn, index: int, reading: int, *, at_once: bool) -> GateSample:
        first = reading * (TRIES + 1)
        for attempt in range(first, first + TRIES if turn.held else first):
            calls = self.draw(turn.number, turn.config, index, turn.slots, attempt)
            made = self.gated(turn.runner, calls, at_once=at_once)
            if made is not None:
                self.verify(turn.taken.verified, turn.side, calls, made)
                return self.sampled(turn.side, turn.slots, made, reading + 1, at_once=at_once)
        calls = self.draw(turn.number, turn.config, index, turn.slots, first + TRIES)
        with self.phases.of("calls"):
            whole = turn.runner.batch(inputs(calls))
        self.verify(turn.taken.verified, turn.side, calls, whole)
        return self.by_host(turn.side, turn.runner, turn.slots, whole, reading + 1)

    def gated(self, runner: Held, calls: Sequence[Call], *, at_once: bool = False) -> Gated | None:
        """A batch that waited behind the gate until all of it was queued; None if it did not."""
        with self.phases.of("calls"):
            made = runner.gated(inputs(calls), at_once=at_once)
        return made if made is not None and made.held else None

    def sampled(
        self, side: SideName, slots: int, made: Gated, attempt: int = 1, *, at_once: bool = False
    ) -> GateSample:
        """The times of a batch behind the gate."""
        sample = GateSample(
            slots=slots,
            clock=GATE_CLOCK,
            reported_ns=made.open_ns,
            open_ns=made.open_ns,
            device_ns=made.device_ns,
            launch_ns=made.launch_ns,
            at_once=at_once,
            doubt_ns=made.doubt_ns,
            attempts=attempt,
            state=device_state.reading(),
        )
        return self.empties.less(side, sample)

    def by_host(
        self, side: SideName, runner: Held, slots: int, batch: Batch, attempt: int = 1
    ) -> GateSample:
        """The times of a batch that did not wait, host time included."""
        if not self.empties.sides[side].host:
            empty = [runner.empty().wall_ns for _ in range(EMPTY_BATCHES)]
            self.empties.sides[side].host.extend(empty)
        sample = GateSample(
            slots=slots,
            clock=HOST_CLOCK,
            reported_ns=batch.wall_ns,
            open_ns=batch.wall_ns,
            device_ns=batch.reported_ns,
            launch_ns=0,
            attempts=attempt,
            state=device_state.reading(),
        )
        return self.empties.less(side, sample)

    def host_seconds(self, config: Config) -> float:
        """The host's time, so far, to draw a call, for its true outputs, and for its check."""
        checking = self._checking.seconds(config, lambda: self.draw(0, config, _CHECKED, 1)[0])
        return self._judge.host_seconds(config) + checking

    def calibrate_first(self, side: SideName, runner: Held, config: Config) -> None:
        """``calibrate`` if this side has no empty batches yet."""
        if not self.empties.sides[side].settled:
            self.calibrate(side, runner, config)

    def calibrate(self, side: SideName, runner: Held, config: Config) -> None:
        """Record a few empty batches, with ``config`` loaded; done in each process.

        Each one clears, delivers and copies the memory of all slots.
        """
        known = self.empties.sides[side]
        fewer = FEWER_EMPTY if config.name in self.large else 1
        if side == "baseline" and not known.host:
            known.host.extend(runner.empty().wall_ns for _ in range(EMPTY_BATCHES))
        runner.gated([])  # the first of a process takes twice as long
        for at_once, kept, count in (
            (False, known.settled, EMPTY_BATCHES // fewer),
            (True, known.at_once, EMPTY_AT_ONCE // fewer),
        ):
            for _ in range(count):
                made = runner.gated([], at_once=at_once)
                if made is None:
                    return
                if made.doubt_ns <= DOUBT_NS:
                    kept.append(made.open_ns)

    def _time_repeated(self, turn: Turn) -> None:
        """Time one call repeated as often as a batch has calls, so that its data is in the caches.

        A candidate may reuse its result, so this time decides nothing. The final outputs are
        verified like any other.
        """
        calls = self.draw(turn.number, turn.config, _WARM, 1)
        with self.phases.of("calls"):
            made = turn.runner.gated(inputs(calls), repeats=turn.slots)
        if made is not None and made.held:
            self.verify(turn.taken.verified, turn.side, calls, made)
            turn.taken.warm.append(self.sampled(turn.side, turn.slots, made))

    def _record(
        self,
        side: SideName,
        runner: Held,
        configs: Sequence[Config],
        planned: Planned,
        found: Mapping[str, Mapping[SideName, Taken]],
    ) -> None:
        """Time the calls once more as one graph; this is the last request to the runner.

        A graph has to be as exact as the same program's timed calls. Candidates need not support
        recording, so faults are ignored.
        """
        try:
            for config in configs:
                slots = planned(side, runner, config).slots
                self.prepare(side, runner, config, slots)
                calls = self.draw(0, config, 1, slots)
                batch = runner.replay(inputs(calls))
                if batch is None:
                    return
                own = found[config.name][side].verified.excess
                if self._verifier.finding(calls[0], batch.outputs[0], own).ok:
                    times = self.graphs.setdefault(config.name, {})
                    times[side] = batch.reported_ns / slots
        except CandidateFault:
            return

    def draw(
        self, number: int, config: Config, batch: int, size: int, attempt: int = 0
    ) -> list[Call]:
        """Draw inputs that are equal for both sides; ``number`` 0 is for calls that are not timed.

        All calls of a config in one round have one state: large ones take seconds to load.
        """
        shared = epoch(self._drawn, self._number)
        first = ((epoch(self._drawn, number) << 4 | attempt) << 8 | batch) << 16
        with self.phases.of("draw"):
            return [
                self._judge.call(Case(STAGE, config, round=first + slot, epoch=shared))
                for slot in range(size)
            ]

    def verify(
        self, verified: Verified, side: SideName, calls: Sequence[Call], made: Batch | Gated
    ) -> None:
        """Verify the outputs of a batch; a candidate's must be correct."""
        whole = side == "candidate"
        with self.phases.of("verify"):
            self._verifier.add(verified, calls, made.outputs, whole=whole)
