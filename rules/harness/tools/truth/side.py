"""One program and its runners, one at a time."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from base.granted_time import GRANTED
from base.program import Batch, CandidateFault, Config, Program, RunnerPolicy, Signature
from base.spec import Spec, SpecError
from terms.reasons import Reason
from torch import Tensor

from truth import compiled_cache
from truth.assessment import Tensors


class Running(Protocol):
    """A runner process with one program in it, as the launcher hands it out."""

    @property
    def spent_seconds(self) -> float:
        """How long its requests have taken together, as far as the machine granted the time."""

    def load(self, config: Config, slots: int) -> object:
        """Make ready for batches of up to ``slots`` calls of one config."""

    def batch(self, inputs: Sequence[Mapping[str, Tensor]], left_out: int | None = None) -> Batch:
        """One call per item of ``inputs``; launches of the call ``left_out`` have no effect."""

    def repeat(self, inputs: Mapping[str, Tensor], calls: int) -> Batch:
        """A batch of ``calls`` calls on the same inputs, with the outputs of the last call."""

    def replay(self, inputs: Sequence[Mapping[str, Tensor]]) -> Batch | None:
        """A batch with its launches recorded and run as one graph; None if that fails."""

    def empty(self) -> Batch:
        """A batch without calls, for its cost."""

    def close(self) -> None:
        """End the process. Raises CandidateFault if its end shows a broken protocol."""

    def kill(self) -> None:
        """Kill the process."""


class Launching(Protocol):
    """Starts runners."""

    def open(
        self, program: Program, signature: Signature, policy: RunnerPolicy | None = None
    ) -> Running:
        """A fresh runner process in its own sandbox."""


class Side:
    """One program and its current runner; after a fault, a fresh one replaces it.

    All its runners together have ``total_seconds``. Otherwise a program that is slow in every
    call, but within each limit, could outlast the gate, whose own timeout blames no program.
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
    def program(self) -> Program:
        """The program that its runners run."""
        return self._program

    @property
    def cache(self) -> str:
        """The directory of its compilers' cache; empty for none."""
        return self._policy.cache

    @property
    def may_prove(self) -> bool:
        """Whether a call's launches can be left out, to show what they compute.

        On a device a left-out call may change the results of later ones, which may rely on what
        it leaves in memory. On the processor a Triton candidate also has PyTorch's copies, which
        may be all that a task needs. Other programs may call libraries.
        """
        return self._program.abi in {"hip", "python"} and not self._program.on_device

    def run(
        self, config: Config, inputs: Sequence[Tensors], left_out: int | None = None
    ) -> Sequence[Tensors]:
        """The outputs of one batch. Raises CandidateFault and MachineFault."""
        try:
            with self._spending():
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
        """Group consecutive calls with one state, so that the runner gets each state once."""
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
    def running(self) -> Iterator[Running]:
        """A fresh runner that ends with the block.

        Its start and its requests count against the program, and nothing that the judge does in
        between: drawing inputs and verifying outputs may take longer than the calls. Raises
        CandidateFault, also if the runner ends badly.
        """
        with self._spending():
            runner = self.open()
        try:
            yield runner
            runner.close()
        finally:
            self._spent_seconds += runner.spent_seconds
            runner.kill()

    @contextmanager
    def _spending(self) -> Iterator[None]:
        """Count the block's time against the program, as far as the machine granted it."""
        started = GRANTED.now()
        try:
            yield
        finally:
            self._spent_seconds += GRANTED.now() - started

    def run_each(self, config: Config, inputs: Sequence[Tensors]) -> list[Tensors | CandidateFault]:
        """The outputs, or the fault, of each call: run in one batch, and singly after a fault.

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

    def beside(self) -> Side:
        """The same program in another runner, with the same time limit."""
        return Side(
            self._launcher, self._program, self._signature, self._policy, self._total_seconds
        )

    def without_launches(self) -> Side:
        """The same program in a runner where launched kernels do not run."""
        policy = replace(self._policy, launches=False, hides=False)
        left = self._total_seconds - self._spent_seconds
        return Side(self._launcher, self._program, self._signature, policy, left)

    def in_mode(self, mode: str) -> Side:
        """The same program through ``torch.compile`` in one of its modes; not compiled for ''."""
        return self._compiled(mode, compiled_cache.folder_of(self._policy.cache, mode))

    def tuning(self, mode: str, name: str, after: str = "") -> Side:
        """As ``in_mode``, with a cache of its own, of this name, for a tuning after another one."""
        return self._compiled(mode, compiled_cache.tuning_folder(self._policy.cache, name, after))

    def _compiled(self, mode: str, cache: str) -> Side:
        program = replace(self._program, mode=mode)
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


def remembering(policy: RunnerPolicy, spec: Spec) -> RunnerPolicy:
    """The policy, with a cache for all runners if the baseline is compiled when it is called."""
    if not spec.baseline.on_device or spec.baseline.abi == "hip":
        return policy
    _CACHES.append(folder := tempfile.TemporaryDirectory(prefix="baseline-"))
    if spec.compiled:
        try:
            compiled_cache.lay_out(Path(spec.compiled), folder.name)
        except (OSError, ValueError) as error:
            raise SpecError(f"what was compiled of the baseline: {error}") from None
    return replace(policy, cache=folder.name)


_CACHES: list[tempfile.TemporaryDirectory[str]] = []  # kept until this process ends
