"""Runs both sides on the same inputs and judges each."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from base import seeds
from base.granted_time import GRANTED
from base.program import Batch, CandidateFault, Config, Program, RunnerPolicy, Signature
from base.seeds import Seeds
from base.spec import Spec, SpecError
from gpu.driver import accelerator
from terms.policy import DEFAULT, JudgingPolicy
from terms.reasons import Reason
from terms.tolerance import bounds
from torch import Tensor

from truth import comparison, compiled_cache
from truth.assessment import Assessor, Call, Finding, Tensors
from truth.lazy_outputs import LazyOutputs
from truth.oracle import Oracle
from truth.proof import Proof


class Running(Protocol):
    """A runner process with one program in it, as the launcher hands it out."""

    def load(self, config: Config, slots: int) -> object:
        """Make ready for batches of up to ``slots`` calls of one config."""

    def batch(self, inputs: Sequence[Mapping[str, Tensor]], left_out: int | None = None) -> Batch:
        """One call per item of ``inputs``; launches of the call ``left_out`` have no effect."""

    def repeat(self, inputs: Mapping[str, Tensor], calls: int) -> Batch:
        """A batch of ``calls`` calls on the same inputs: the outputs are those of the last."""

    def replay(self, inputs: Sequence[Mapping[str, Tensor]]) -> Batch | None:
        """The same with its launches recorded and run as one graph; None if they cannot be."""

    def empty(self) -> Batch:
        """A batch without calls, for its cost."""

    def close(self) -> None:
        """End the process. Raises CandidateFault if its end shows a broken protocol."""

    def kill(self) -> None:
        """End the process without asking it."""


class Launching(Protocol):
    """Starts runners."""

    def open(
        self, program: Program, signature: Signature, policy: RunnerPolicy | None = None
    ) -> Running:
        """A fresh runner process in its own sandbox."""


@dataclass(frozen=True)
class Case:
    """One call to be judged. Its seed follows from where it is asked: stage and round.

    Calls of one config and ``epoch`` have one state; without an epoch, those of one stage.
    """

    stage: str
    config: Config
    distribution: str = DEFAULT
    round: int = 0
    epoch: int | None = None


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

        Where the baseline fails or the oracle has no answer, the case asks for more than the task
        does; but a contract that only the candidate breaks is broken all the same.
        """
        own = self.candidate.rejected and self.candidate.reason is not self.baseline.reason
        return (self.baseline.ok and self.defined) or own


class Side:
    """One program and its present runner, which a fault replaces by a fresh one.

    All its runners together have ``total_seconds``: a program that is slow everywhere, though
    nowhere too slow, must not outlast the gate, whose own time-out says nothing about anybody.
    """

    def __init__(
        self,
        launcher: Launching,
        program: Program,
        signature: Signature,
        policy: RunnerPolicy | None = None,
        total_seconds: float = math.inf,
    ) -> None:
        self._launcher = launcher
        self._program = program
        self._signature = signature
        self._policy = policy or RunnerPolicy()
        self._total_seconds = total_seconds
        self._spent_seconds = 0.0
        self._runner: Running | None = None
        self._loaded: tuple[Config, int] | None = None

    @property
    def cache(self) -> str:
        """The directory where its compilers keep what they make; empty for none."""
        return self._policy.cache

    @property
    def may_prove(self) -> bool:
        """Whether a call's launches can be left out, to show what they compute.

        On a device a call that is left out may change the results of later ones, which expect what
        it leaves in memory. On the processor a Triton candidate has PyTorch's copies beside its
        kernels, and they may be all that a task takes. Other programs may call libraries.
        """
        return self._program.abi in {"hip", "python"} and not self._program.on_device

    def run(
        self, config: Config, inputs: Sequence[Tensors], left_out: int | None = None
    ) -> Sequence[Tensors]:
        """The outputs of one batch. Raises CandidateFault and MachineFault."""
        try:
            with self.spending():
                if self._runner is None:
                    self._runner = self.open()
                if self._loaded != (config, len(inputs)):
                    self._runner.load(config, len(inputs))
                    self._loaded = (config, len(inputs))
                if not self._signature.state:
                    return self._runner.batch(inputs, left_out).outputs
                made = [self._runner.batch(part).outputs for part in self._by_state(inputs)]
                return [outputs for batch in made for outputs in batch]
        except CandidateFault:
            self.kill()
            raise

    def _by_state(self, inputs: Sequence[Tensors]) -> list[list[Tensors]]:
        """Calls in a row that have one state: the runner is given each once."""
        names = [argument.name for argument in self._signature.state]
        parts: list[list[Tensors]] = []
        for given in inputs:
            if parts and all(parts[-1][0][name] is given[name] for name in names):
                parts[-1].append(given)
            else:
                parts.append([given])
        return parts

    def open(self) -> Running:
        """A fresh runner, which the caller ends. Raises CandidateFault when time is up."""
        left = self._total_seconds - self._spent_seconds
        if left <= 0:
            what = f"the candidate used up the {self._total_seconds:g} s of all its calls together"
            raise CandidateFault(Reason.TIMEOUT, what)
        policy = replace(self._policy, life_seconds=min(left, self._policy.life_seconds))
        return self._launcher.open(self._program, self._signature, policy)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time of the block as the program's, as far as the machine granted it."""
        started = GRANTED.now()
        try:
            yield
        finally:
            self._spent_seconds += GRANTED.now() - started

    def run_each(self, config: Config, inputs: Sequence[Tensors]) -> list[Tensors | CandidateFault]:
        """The outputs, or the fault, of each call: in one batch, and singly after a fault.

        A timeout counts for every call of its batch: finding out which hung takes too long.
        """
        try:
            return list(self.run(config, inputs))
        except CandidateFault as fault:
            if len(inputs) == 1 or fault.reason is Reason.TIMEOUT:
                return [fault] * len(inputs)
            batch_fault = fault
        singly = [self.run_each(config, [item])[0] for item in inputs]
        if not any(isinstance(result, CandidateFault) for result in singly):
            singly[0] = batch_fault
        return singly

    def without_launches(self) -> Side:
        """The same program in a runner where launched kernels do not run."""
        policy = replace(self._policy, launches=False)
        left = self._total_seconds - self._spent_seconds
        return Side(self._launcher, self._program, self._signature, policy, left)

    def in_mode(self, mode: str) -> Side:
        """The same program through ``torch.compile`` in one of its modes; as it is for ''."""
        program = replace(self._program, mode=mode)
        cache = compiled_cache.folder_of(self._policy.cache, mode)
        policy = replace(self._policy, cache=cache)
        return Side(self._launcher, program, self._signature, policy, self._total_seconds)

    def close(self) -> None:
        """End the runner, if there is one. Raises CandidateFault if it ends badly."""
        runner, self._runner, self._loaded = self._runner, None, None
        if runner is not None:
            runner.close()

    def kill(self) -> None:
        """Kill the runner, if there is one, in any state."""
        runner, self._runner, self._loaded = self._runner, None, None
        if runner is not None:
            runner.kill()


def _remembering(policy: RunnerPolicy, spec: Spec) -> RunnerPolicy:
    """The policy of a baseline that is compiled when it is called: once for all its runners."""
    if not spec.baseline.on_device or spec.baseline.abi == "hip":
        return policy
    _CACHES.append(folder := tempfile.TemporaryDirectory(prefix="baseline-"))
    if spec.compiled:
        try:
            compiled_cache.lay_out(Path(spec.compiled), folder.name)
        except (OSError, ValueError) as error:
            raise SpecError(f"what was compiled of the baseline: {error}") from None
    return replace(policy, cache=folder.name)


_CACHES: list[tempfile.TemporaryDirectory[str]] = []  # until this process ends


class Judge:
    """Judges cases by an oracle, with both programs in runners of their own."""

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
    ) -> None:
        self.candidate = candidate
        self.baseline = baseline
        self.proof = Proof(candidate, assessor)
        self.assessor = assessor
        self.oracle = oracle
        self._answers = LazyOutputs(oracle)
        self._on_device = on_device
        self._updates = updates
        self._seeds = source
        self._states: dict[str, tuple[tuple[str, int], Tensors]] = {}

    @classmethod
    def assemble(cls, spec: Spec, launcher: Launching, policy: JudgingPolicy) -> Judge:
        """The judge of one spec. Raises SpecError for an invalid policy."""
        try:
            limits = bounds(policy.tolerance)
            compare = comparison.read(
                spec.compare, tuple(argument.name for argument in spec.signature.results)
            )
        except ValueError as error:
            raise SpecError(str(error)) from None
        oracle = Oracle(spec.reference, spec.signature)
        digest = seeds.artifact_digest([Path(spec.candidate.path)])
        limits_of = partial(RunnerPolicy.suited, call_seconds=policy.call_seconds)
        return cls(
            candidate=Side(
                launcher,
                spec.candidate,
                spec.signature,
                replace(limits_of(spec.candidate), own_kernels=True),
                policy.total_seconds,
            ),
            baseline=Side(
                launcher,
                spec.baseline,
                spec.signature,
                _remembering(limits_of(spec.baseline), spec),
            ),
            oracle=oracle,
            assessor=Assessor(
                oracle, spec.signature, limits, compare, factor=policy.baseline_factor
            ),
            source=Seeds(spec.salt, digest, spec.gate),
            on_device=spec.candidate.on_device,
            updates=bool(spec.signature.updates),
        )

    @property
    def repeatable(self) -> bool:
        """Whether calls may be repeated on the same inputs, which no call changes."""
        return not self._updates

    def call(self, case: Case) -> Call:
        """Draw the inputs of a case and compute what is true of them; on a device, once asked."""
        generator = self._seeds.generator(
            f"{case.stage}/{case.distribution}", case.config.name, case.round
        )
        inputs = self.oracle.inputs(case.config, generator, case.distribution)
        inputs |= self._state(case)
        if self._on_device:
            accelerator().synchronize()  # so that whoever times this call times its work
            answer = self._answers.to(case.config, inputs)
            return Call(case.config, case.distribution, inputs, answer)
        expected = self.oracle.expected(case.config, inputs)
        return Call(case.config, case.distribution, inputs, expected)

    def _state(self, case: Case) -> Tensors:
        """The state of the case's config; the same tensors until its epoch ends."""
        name = case.config.name
        stage, epoch = (case.stage, 0) if case.epoch is None else ("epoch", case.epoch)
        found = self._states.get(name)
        if found is None or found[0] != (stage, epoch):
            generator = self._seeds.generator(f"state/{stage}", name, epoch)
            self._states[name] = (stage, epoch), self.oracle.state(case.config, generator)
        return self._states[name][1]

    def judge(self, cases: Sequence[Case]) -> list[Judged]:
        """Judge cases of one config, each side running them in one batch."""
        calls = [self.call(case) for case in cases]
        inputs = [call.inputs for call in calls]
        ran = self.baseline.run_each(cases[0].config, inputs)
        made = self.proof.run_each(cases[0].config, calls)
        return [
            self._judged(case, call, theirs, ours)
            for case, call, theirs, ours in zip(cases, calls, ran, made, strict=True)
        ]

    def _judged(
        self,
        case: Case,
        call: Call,
        baseline: Tensors | CandidateFault,
        candidate: Tensors | CandidateFault,
    ) -> Judged:
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

    def finish(self) -> None:
        """End both runners properly. Raises CandidateFault if the candidate ends badly."""
        try:
            self.candidate.close()
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill both runners, in any state."""
        self.candidate.kill()
        self.baseline.kill()
