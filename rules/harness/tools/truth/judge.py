"""Runs both sides on the same inputs and judges each."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from base import seeds
from base.program import CandidateFault, Config, MachineFault, Program, RunnerPolicy
from base.seeds import Seeds
from base.spec import Spec, SpecError
from gpu import session
from terms.policy import DEFAULT, JudgingPolicy
from terms.reasons import Reason
from terms.tolerance import bounds
from torch import OutOfMemoryError, Tensor

from truth import comparison, lanes, repeatable
from truth.assessment import Assessor, Call, Tensors, larger
from truth.finding import Finding
from truth.fitting import fitting
from truth.lanes import Lane, Ran, Results
from truth.lazy_outputs import LazyOutputs, bytes_of
from truth.oracle import Oracle
from truth.precision import multiply_matrices
from truth.proof import Proof
from truth.recent import Recent
from truth.side import Launching, Side, remembering

STATE_BYTES = 1 << 30
"""The most memory for the states of all configs but the latest."""


@dataclass(frozen=True)
class Case:
    """One call to be judged. Its stage and round determine its seed.

    Calls of one config and ``epoch`` share one state; without an epoch, those of one stage do.
    ``shown`` means that the task itself names the config, so its reference must have an answer.
    """

    stage: str
    config: Config
    distribution: str = DEFAULT
    round: int = 0
    epoch: int | None = None
    shown: bool = False

    @property
    def key(self) -> Hashable:
        """Equal for cases with equal inputs."""
        config = (self.config.name, tuple(sorted(self.config.dims.items())))
        return (self.stage, config, self.distribution, self.round, self.epoch)


@dataclass(frozen=True)
class Judged:
    """One case with the findings of both sides.

    Attributes:
        defined: whether the oracle has an answer.
    """

    case: Case
    baseline: Finding
    candidate: Finding
    defined: bool = True

    @property
    def applicable(self) -> bool:
        """Whether the case says anything about the candidate.

        If the baseline fails or the oracle has no answer, the case asks for more than the task
        does. A contract that only the candidate breaks still counts.
        """
        own = self.candidate.rejected and self.candidate.reason is not self.baseline.reason
        return (self.baseline.ok and self.defined) or own


_Begun = tuple[Sequence[Case], Sequence[Call], Results]
"""A running group: its cases, its calls, and a function that waits for its results."""


def _await(begun: Iterable[_Begun]) -> None:
    """Wait until these groups have ended, with or without an error."""
    for _, _, results in begun:
        with suppress(Exception):  # raised again at its turn, if that comes
            results()


def _faults(results: Ran) -> set[Reason]:
    return {item.reason for item in results if isinstance(item, CandidateFault)}


class Judge:
    """Judges cases by an oracle, with both programs in their own runners.

    ``at_once`` is the number of lanes; 0 means one lane without threads.
    """

    def __init__(
        self,
        candidate: Side,
        baseline: Side,
        oracle: Oracle,
        assessor: Assessor,
        source: Seeds,
        *,
        on_device: bool = False,
        updates: bool = False,
        at_once: int = 0,
    ) -> None:
        self.candidate = candidate
        self.baseline = baseline
        self.proof = Proof(candidate, assessor)
        self._sides = [(candidate, baseline)]
        self._sides += [(candidate.beside(), baseline.beside()) for _ in range(1, at_once)]
        self._lanes = [Lane(theirs, Proof(ours, assessor)) for ours, theirs in self._sides[1:]]
        self._lanes.insert(0, Lane(baseline, self.proof))
        self._pool = lanes.pool(at_once) if at_once else None
        self.assessor = assessor
        self.oracle = oracle
        self._answers = LazyOutputs(oracle)
        self._draw_seconds: dict[str, float] = {}
        self._recent: Recent[Call] = Recent()
        self._on_device = on_device
        self._updates = updates
        self._seeds = source
        self._states: dict[str, tuple[tuple[str, int], Tensors]] = {}

    @classmethod
    def assemble(
        cls, spec: Spec, launcher: Launching, policy: JudgingPolicy, *, timed: bool = True
    ) -> Judge:
        """The judge of one spec. Raises SpecError for an invalid policy.

        Unless ``timed``, programs may run in parallel on one device.
        """
        try:
            limits = bounds(policy.tolerance)
            compare = comparison.read(
                spec.compare, tuple(argument.name for argument in spec.signature.results)
            )
        except ValueError as error:
            raise SpecError(str(error)) from None
        on_device = spec.candidate.on_device
        if on_device:
            multiply_matrices()
        oracle = Oracle.of(spec)
        digest = seeds.artifact_digest([Path(spec.candidate.path)])

        def limits_of(program: Program) -> RunnerPolicy:
            limits = RunnerPolicy.suited(program, policy.call_seconds)
            return replace(limits, awake=timed)

        return cls(
            candidate=Side(
                launcher,
                spec.candidate,
                spec.signature,
                replace(limits_of(spec.candidate), own_kernels=True, hides=not timed),
                policy.total_seconds,
            ),
            baseline=Side(
                launcher,
                spec.baseline,
                spec.signature,
                remembering(limits_of(spec.baseline), spec),
            ),
            oracle=oracle,
            assessor=Assessor(
                oracle,
                spec.signature,
                limits,
                compare,
                factor=policy.baseline_factor,
                timed=timed,
            ),
            source=Seeds(spec.salt, digest, spec.gate),
            on_device=on_device,
            updates=bool(spec.signature.updates),
            at_once=lanes.affordable() if on_device and not timed else 0,
        )

    @property
    def repeatable(self) -> bool:
        """Whether calls may be repeated on the same inputs, because no call changes them."""
        return not self._updates

    def require_repeatable(self, config: Config) -> None:
        """Raise TaskFault if the reference gives two answers for the same inputs."""
        repeatable.require(self.oracle, config, self.inputs(Case("repeated", config)))

    def call(self, case: Case) -> Call:
        """Draw a case's inputs and compute its true outputs; on a device, when they are read."""
        if (known := self._recent.get(case.key)) is not None:
            return known
        self._answers.forget_large()
        began, name = time.perf_counter(), case.config.name
        inputs = self.inputs(case)
        took = time.perf_counter() - began
        self._draw_seconds[name] = min(took, self._draw_seconds.get(name, took))
        if self._on_device:
            own_bytes = bytes_of(inputs) - bytes_of(self._state(case))  # calls share their state
            answer = self._answers.to(case.config, inputs, own_bytes)
            call = Call(case.config, case.distribution, inputs, answer)
            self._recent.put(case.key, call, own_bytes)
            return call
        expected = self.oracle.expected(case.config, inputs)
        return Call(case.config, case.distribution, inputs, expected)

    def host_seconds(self, config: Config) -> float:
        """The least time of the host to draw a call, and for its true outputs, on a device."""
        name = config.name
        return self._draw_seconds.get(name, 0.0) + self._answers.seconds.get(name, 0.0)

    def remember(self, most_bytes: int) -> None:
        """Forget all calls; from now on, keep those that will be made again, and their outputs.

        They take at most ``most_bytes`` of the device. Both sides of a measurement get the same
        calls. Drawing a call and computing its true outputs takes longer than the call.
        """
        for recent in (self._recent, self._answers.recent):
            recent.clear()
            recent.most_bytes = most_bytes // 2

    def inputs(self, case: Case) -> dict[str, Tensor]:
        """A case's inputs and state, without its true outputs."""
        generator = self._seeds.generator(
            f"{case.stage}/{case.distribution}", case.config.name, case.round
        )
        inputs = self.oracle.inputs(case.config, generator, case.distribution)
        return inputs | dict(self._state(case))

    def _state(self, case: Case) -> Tensors:
        """The state of the case's config; the same tensors until its epoch ends.

        Where states are large, those of earlier configs are dropped, and drawn again if needed.
        """
        name = case.config.name
        stage, epoch = (case.stage, 0) if case.epoch is None else ("epoch", case.epoch)
        found = self._states.pop(name, None)
        if found is None or found[0] != (stage, epoch):
            while self._states and self._state_bytes() > STATE_BYTES:
                del self._states[next(iter(self._states))]
                self._recent.clear()  # its calls have the tensors that were dropped
            generator = self._seeds.generator(f"state/{stage}", name, epoch)
            found = (stage, epoch), self.oracle.state(case.config, generator)
        self._states[name] = found
        return found[1]

    def _state_bytes(self) -> int:
        return sum(bytes_of(state) for _, state in self._states.values())

    def judge(self, cases: Sequence[Case]) -> list[Judged]:
        """Judge cases of one config, each side running them in one batch."""
        return next(self.judge_each([cases]))

    def judge_each(self, groups: Iterable[Sequence[Case]]) -> Generator[list[Judged]]:
        """Judge groups of cases, each of one config, and yield them in their order.

        On a device several groups run at once, even before their turn. The caller may stop early.
        """
        if self._pool is None:
            for cases in groups:
                calls = self._calls(cases)
                yield self._found(cases, calls, self._lanes[0].run(cases[0].config, calls))
            return
        begun = deque[_Begun]()
        try:
            for index, cases in enumerate(groups):
                if len(begun) == len(self._lanes):
                    yield self._next(begun)
                calls = self._calls(cases)
                alone = lanes.is_large(calls)
                while alone and begun:
                    yield self._next(begun)
                lane = self._lanes[0 if alone else index % len(self._lanes)]
                begun.append((cases, calls, lane.begin(cases[0].config, calls, self._pool)))
                if alone:
                    yield self._next(begun)
            while begun:
                yield self._next(begun)
        finally:
            _await(begun)

    def _calls(self, cases: Sequence[Case]) -> list[Call]:
        with fitting(cases[0].config):
            return [self.call(case) for case in cases]

    def _next(self, begun: deque[_Begun]) -> list[Judged]:
        """The findings of the group that was begun first."""
        cases, calls, results = begun.popleft()
        with fitting(cases[0].config):
            return self._found(cases, calls, self._settled(calls, results, begun))

    def _settled(
        self, calls: Sequence[Call], results: Results, others: Iterable[_Begun]
    ) -> tuple[Ran, Ran]:
        """The results of a batch; rerun alone if memory may have run out.

        Device memory that one program holds is missing for all others. A candidate could make the
        baseline fail, and then need not be right. So such a failure counts only with no candidate
        alive.
        """
        made: Ran | None = None
        try:
            ran, made = results()
            if not (_faults(ran) or Reason.OUT_OF_MEMORY in _faults(made)):
                return ran, made
        except (OutOfMemoryError, MachineFault) as error:  # the rerun shows whether it lasts
            lanes.let_go(error)
        _await(others)
        self.kill()
        self.give_back_memory()
        config = calls[0].config
        ran = self.baseline.run_each(config, [call.inputs for call in calls])
        if made is None or Reason.OUT_OF_MEMORY in _faults(made):
            made = self.proof.run_each(config, calls)
        return ran, made

    def _found(
        self, cases: Sequence[Case], calls: Sequence[Call], results: tuple[Ran, Ran]
    ) -> list[Judged]:
        return [
            self._judged(case, call, theirs, ours)
            for case, call, theirs, ours in zip(cases, calls, *results, strict=True)
        ]

    def _judged(
        self,
        case: Case,
        call: Call,
        baseline: Tensors | CandidateFault,
        candidate: Tensors | CandidateFault,
    ) -> Judged:
        if case.shown:
            self.assessor.require_answer(call)
        excesses: Mapping[str, float] = {}
        if isinstance(baseline, CandidateFault):
            found = Finding.of(baseline)
        else:
            excesses = self.assessor.excesses(call, baseline)
            found = self.assessor.assess(call, baseline, excesses)
        defined = self.assessor.defined(call)
        if isinstance(candidate, CandidateFault):
            return Judged(case, found, Finding.of(candidate), defined)
        return Judged(case, found, self.assessor.assess(call, candidate, excesses), defined)

    def given_the_baseline(
        self, call: Call, outputs: Tensors, slack: Mapping[str, float]
    ) -> Finding:
        """The finding on a candidate's call; ``slack`` has the baseline's error on other calls.

        If that is too little, the baseline runs this very call, too: a candidate need not be more
        exact than the baseline anywhere, and it alone has run what was read again or not shared.
        """
        found = self.assessor.assess(call, outputs, slack)
        if found.reason is not Reason.WRONG_RESULT or not self.assessor.measures:
            return found
        theirs = self.baseline.run_each(call.config, [call.inputs])[0]
        self.baseline.kill()
        if isinstance(theirs, CandidateFault):
            return found
        most = larger(slack, self.assessor.excesses(call, theirs))
        return self.assessor.assess(call, outputs, most)

    def finish(self) -> None:
        """End all runners properly. Raises CandidateFault if the candidate ends badly."""
        try:
            for candidate, _ in self._sides:
                candidate.close()
        finally:
            self.kill()

    def thin_out(self) -> None:
        """Kill the runners of all lanes but one, so that their memory is free."""
        for side in chain.from_iterable(self._sides[1:]):
            side.kill()

    def give_back_memory(self) -> None:
        """Give a device the memory that only a large call and its answer have taken.

        Runners need some that PyTorch does not lend. What an error's frames hold is not free yet.
        """
        self._answers.forget_large()
        gc.collect()
        session.give_back()

    def kill(self) -> None:
        """Kill all runners, in any state."""
        for side in chain.from_iterable(self._sides):
            side.kill()
