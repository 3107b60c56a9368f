"""A runner as the judge uses it: load a config, run batches, close."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from base.program import (
    Batch,
    CandidateFault,
    Config,
    MachineFault,
    Program,
    Reason,
    RunnerPolicy,
    Signature,
)

from runners import diagnosis
from runners.conversation import Answer, Conversation
from runners.protocol import Kind

if TYPE_CHECKING:
    from torch import Tensor

    from runners.config_memory import ConfigMemory


class Runner:
    """One runner process in its own sandbox. Obtained from ``Launcher.open``.

    After a CandidateFault or a MachineFault the process is dead, and only ``close`` is left.
    """

    def __init__(
        self,
        program: Program,
        signature: Signature,
        policy: RunnerPolicy,
        conversation: Conversation,
    ) -> None:
        self._program = program
        self._signature = signature
        self._policy = policy
        self._conversation = conversation
        self._memory: ConfigMemory | None = None
        self._left_seconds = policy.life_seconds
        self._open = True

    def start(self) -> None:
        """Wait until the runner is up, then have it load the candidate.

        Raises MachineFault for the first, CandidateFault for the second.
        """
        seconds = self._policy.open_seconds
        with self._ending_on_fault():
            self._conversation.await_start(seconds)
            doing = "while it was loaded"
            self._ask(Kind.START, Kind.READY, seconds=seconds, doing=doing)

    def load(self, config: Config, slots: int) -> None:
        """Share the buffers of a config, for batches of up to ``slots`` calls.

        Raises CandidateFault, or ValueError for a signature beyond the protocol's limits.
        """
        from runners.config_memory import ConfigMemory

        if slots < 1:
            raise ValueError("a config is loaded for at least one call")
        with self._ending_on_fault():
            self._forget_memory()
            memory = ConfigMemory(self._program, self._signature, config, slots)
            self._memory = memory
            self._conversation.block = memory.block
            wanted = self._ask_to_load(Kind.LOAD, fds=memory.fds).values[0]
            if not 0 <= wanted <= self._policy.workspace_bytes:
                allowed = self._policy.workspace_bytes
                what = f"asked for a workspace of {wanted} bytes, where {allowed} are allowed"
                raise diagnosis.fault(Reason.OUT_OF_MEMORY, what)
            if wanted:
                scratch = memory.add_scratch(wanted)
                values = (scratch.size, scratch.regions[0].first, wanted)
                self._ask_to_load(Kind.SCRATCH, values, (scratch.fd,))

    def batch(self, inputs: Sequence[Mapping[str, Tensor]]) -> Batch:
        """Call the candidate once for each element of ``inputs``; at most ``slots`` of them.

        Raises CandidateFault for whatever goes wrong; ValueError for inputs of another
        number, shape or dtype than the loaded config's.
        """
        batch = self._make(Kind.RUN, inputs)
        assert batch is not None
        return batch

    def repeat(self, inputs: Mapping[str, Tensor], calls: int) -> Batch:
        """Call the candidate ``calls`` times on the same inputs, in the same slot.

        Raises like ``batch``. What every call but the last wrote is seen by nobody.
        """
        batch = self._make(Kind.RUN, [inputs], repeats=calls)
        assert batch is not None
        return batch

    def replay(self, inputs: Sequence[Mapping[str, Tensor]]) -> Batch | None:
        """The same with the launches of all calls recorded and run as one graph.

        None where the platform, or what the candidate calls, cannot be recorded. Faults are
        those of ``batch``; after them, and after None, the runner is good for nothing more.
        """
        return self._make(Kind.REPLAY, inputs)

    def _make(
        self, kind: Kind, inputs: Sequence[Mapping[str, Tensor]], repeats: int = 1
    ) -> Batch | None:
        memory = self._memory
        if memory is None:
            raise ValueError("no config is loaded")
        calls = len(inputs) * repeats
        if not 1 <= calls <= memory.slots:
            raise ValueError(f"a batch of {calls} calls, where {memory.slots} slots are loaded")
        order = random.SystemRandom().sample(range(memory.slots), len(inputs))
        memory.prepare(order, inputs, repeats)
        with self._ending_on_fault():
            doing = f"in a batch of {calls} call{'s' if calls > 1 else ''}"
            held_up_ns = 0
            if self._program.on_device:
                self._arm(doing)
                held_up_ns = memory.fill(order, inputs)
            answer = self._ask_to_run(kind, calls, doing)
            held_up_ns += memory.take()
            if self._program.on_device:
                self._conversation.freeze(doing)
            if kind is Kind.REPLAY and not answer.values[0]:
                return None
            if self._program.abi == "torch":
                # Outside both clocks, so a program could put its work off until here: this
                # ABI is for baselines, which come with the task.
                seconds = self._policy.batch_seconds
                self._ask(Kind.COLLECT, Kind.READY, seconds=seconds, doing=doing)
                memory.take()
            memory.check(order, inputs)
        return self._batch(answer, held_up_ns, memory.read(order))

    def empty(self) -> Batch:
        """A batch of no calls, to calibrate what a batch costs by itself."""
        with self._ending_on_fault():
            doing = "in an empty batch"
            if self._program.on_device:
                self._arm(doing)
            answer = self._ask_to_run(Kind.EMPTY, 0, doing)
            if self._program.on_device:
                self._conversation.freeze(doing)
        return self._batch(answer)

    def said(self) -> str:
        """The end of what the runner has printed, safe to show; for people only."""
        return self._conversation.said()

    def close(self) -> None:
        """End the runner; may be called twice.

        Raises CandidateFault when its end shows a broken protocol, such as an answer that
        the candidate had prepared before.
        """
        if self._open:
            with self._ending_on_fault():
                seconds = self._policy.batch_seconds
                self._ask(Kind.BYE, Kind.GONE, seconds=seconds, doing="at its end")
            self.kill()

    def kill(self) -> None:
        """End the runner without asking it; may be called twice."""
        if self._open:
            self._open = False
            self._forget_memory()
            self._conversation.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.kill()

    def _ask(
        self,
        kind: Kind,
        expected: Kind,
        *,
        seconds: float,
        doing: str,
        **how: Any,
    ) -> Answer:
        patience = max(0.0, min(seconds, self._left_seconds))
        answer = self._conversation.ask(kind, expected, seconds=patience, doing=doing, **how)
        self._left_seconds -= answer.wall_ns / 1e9
        return answer

    def _ask_to_load(
        self, kind: Kind, values: tuple[int, ...] = (), fds: Sequence[int] = ()
    ) -> Answer:
        seconds = self._policy.load_seconds
        doing = "while its config was loaded"
        return self._ask(kind, Kind.READY, seconds=seconds, doing=doing, values=values, fds=fds)

    def _arm(self, doing: str) -> None:
        """Have a frozen runner wait for its next request without sleeping."""
        seconds = self._policy.batch_seconds
        self._ask(Kind.ARM, Kind.READY, seconds=seconds, doing=doing, freeze=False)

    def _ask_to_run(self, kind: Kind, calls: int, doing: str) -> Answer:
        seconds = self._policy.batch_seconds + calls * self._policy.call_seconds
        how = {"armed": True, "freeze": False} if self._program.on_device else {}
        answer = self._ask(kind, Kind.DONE, seconds=seconds, doing=doing, values=(calls,), **how)
        count, reported_ns, *_ = answer.values
        gave_up = kind is Kind.REPLAY and not count
        if not (count == calls or gave_up) or reported_ns < 0:
            raise diagnosis.violation(f"reported {count} calls in {reported_ns} ns {doing}")
        return answer

    @contextmanager
    def _ending_on_fault(self) -> Iterator[None]:
        if not self._open:
            raise ValueError("the runner is closed")
        try:
            yield
        except (CandidateFault, MachineFault):
            self.kill()
            self._check_device()
            raise

    def _check_device(self) -> None:
        """Raise MachineFault where what failed was the device, for everybody."""
        if self._program.on_device:
            from gpu import session

            session.check()

    def _batch(
        self, answer: Answer, held_up_ns: int = 0, outputs: tuple[Mapping[str, Tensor], ...] = ()
    ) -> Batch:
        reported_ns, wall_ns = answer.values[1], answer.wall_ns + held_up_ns
        if self._program.on_device:  # the processor waits, and that says nothing about the work
            return Batch(outputs, reported_ns, wall_ns)
        spent = answer.spent
        return Batch(
            outputs, reported_ns, wall_ns, spent.thread_ns, spent.process_ns, spent.waited_ns
        )

    def _forget_memory(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
            self._conversation.block = None
