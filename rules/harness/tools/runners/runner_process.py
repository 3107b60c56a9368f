"""The judge's view of a runner: load a config, run batches, close."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from base.granted_time import GRANTED
from base.program import (
    Batch,
    CandidateFault,
    Config,
    Gated,
    MachineFault,
    Program,
    RunnerPolicy,
    Signature,
)
from terms.reasons import Reason

from runners import diagnosis
from runners.conversation import Answer, Conversation
from runners.gating import Gating
from runners.guarding import guarding
from runners.protocol import Kind
from runners.state import common_state, is_same

if TYPE_CHECKING:
    from torch import Tensor

    from runners.config_memory import ConfigMemory
    from runners.launch_pages import Counts, LaunchPages


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
        launches: LaunchPages | None = None,
    ) -> None:
        self._program = program
        self._signature = signature
        self._policy = policy
        self._conversation = conversation
        self._launches = launches
        self._memory: ConfigMemory | None = None
        self._launched = 0
        self._left_seconds = policy.life_seconds
        self._open = True
        self._gating: Gating | None = None
        self._gated = False
        self._wanted: tuple[Config, int] | None = None
        self._state: Mapping[str, Tensor] = {}
        self._fetches = False

    def start(self) -> None:
        """Wait until the runner is running, then make it load the candidate.

        Raises MachineFault if the first fails, CandidateFault if the second does.
        """
        seconds = self._policy.open_seconds
        with self._ending_on_fault():
            self._conversation.await_start(seconds)
            if self._launches:
                self._launches.check_in_force()
            doing = "while it was loaded"
            self._ask(Kind.START, Kind.READY, seconds=seconds, doing=doing)

    def load(self, config: Config, slots: int) -> None:
        """Share the buffers of a config, for batches of up to ``slots`` calls.

        Raises CandidateFault, or ValueError for a signature beyond the protocol's limits.
        """
        if slots < 1:
            raise ValueError("a config is loaded for at least one call")
        with self._ending_on_fault():
            self._forget_memory()
        self._wanted, self._state = (config, slots), {}
        if not self._signature.state:
            self._share(config, slots)

    def has_loaded(self, config: Config, slots: int) -> bool:
        """Whether exactly this is loaded."""
        return self._wanted == (config, slots)

    def _ready(self, inputs: Sequence[Mapping[str, Tensor]]) -> ConfigMemory:
        """The buffers of the loaded config, with the state of these calls.

        A config with a state is loaded with its first call, and again when a call has a different
        state. Raises ValueError if no config is loaded, and if the calls have two states.
        """
        if self._wanted is None:
            raise ValueError("no config is loaded")
        if self._signature.state and inputs:
            state = common_state(self._signature, inputs)
            if self._memory is None or not is_same(state, self._state):
                self._state = state
                self._share(*self._wanted)
        if self._memory is None:
            raise ValueError("a config with a state is loaded with its first call")
        return self._memory

    def _share(self, config: Config, slots: int) -> None:
        from runners.config_memory import ConfigMemory

        with self._ending_on_fault():
            self._forget_memory()
            # Results that cannot be read in place are copied while the clock runs.
            self._fetches = self._program.returns_on_host and self._conversation.can_read()
            lent = (self._program, self._signature, config, slots, self._state)
            memory = ConfigMemory(*lent, copied=not self._fetches)
            self._memory = memory
            self._conversation.block = memory.block
            wanted = self._ask_to_load(Kind.LOAD, fds=memory.fds).values[0]
            allowed = self._policy.workspace_bytes if self._program.abi == "hip" else 0
            if not 0 <= wanted <= allowed:
                what = f"asked for a workspace of {wanted} bytes, where {allowed} are allowed"
                raise diagnosis.fault(Reason.OUT_OF_MEMORY, what)
            if wanted:
                scratch = memory.add_scratch(wanted)
                values = (scratch.size, scratch.regions[0].first, wanted)
                self._ask_to_load(Kind.SCRATCH, values, (scratch.fd,))

    def batch(self, inputs: Sequence[Mapping[str, Tensor]], left_out: int | None = None) -> Batch:
        """Call the candidate once for each element of ``inputs``; at most ``slots`` of them.

        Launches of the call ``left_out`` have no effect. The runner learns which call that is only
        when it makes it.

        Raises CandidateFault for any failure of the candidate; ValueError for inputs whose number,
        shape or dtype differs from the loaded config's.
        """
        batch = self._make(Kind.RUN, inputs, left_out=left_out)
        assert batch is not None
        return batch

    @property
    def spent_seconds(self) -> float:
        """How long its requests have taken together, as far as the machine granted the time."""
        return self._policy.life_seconds - self._left_seconds

    def repeat(self, inputs: Mapping[str, Tensor], calls: int) -> Batch:
        """Call the candidate ``calls`` times on the same inputs, in the same slot.

        Raises what ``batch`` raises. Only the last call's outputs can be read.
        """
        batch = self._make(Kind.RUN, [inputs], repeats=calls)
        assert batch is not None
        return batch

    def gated(
        self, inputs: Sequence[Mapping[str, Tensor]], *, repeats: int = 1, at_once: bool = False
    ) -> Gated | None:
        """Run a batch behind a gate that the judge opens; without ``inputs`` it has no calls.

        With ``repeats`` each call is made that many times in its slot. With ``at_once`` the gate
        opens as soon as the inputs are there, before the device is back at the runner. None if the
        platform has no gates. Raises what ``batch`` raises.
        """
        memory = self._ready(inputs)
        calls = len(inputs) * repeats
        if calls > memory.slots:
            raise ValueError(f"a batch of {calls} calls, where {memory.slots} slots are loaded")
        order = random.SystemRandom().sample(range(memory.slots), len(inputs))
        with self._ending_on_fault():
            if self._gating is None:
                self._gating = Gating(self._conversation, self._ask)
                self._gated = self._gating.install(self._policy.open_seconds)
            if not self._gated:
                return None
            return self._gating.batch(
                memory,
                order,
                inputs,
                repeats=repeats,
                at_once=at_once,
                seconds=self._policy.batch_seconds + calls * self._policy.call_seconds,
                collect=self._program.abi == "torch",
            )

    def replay(self, inputs: Sequence[Mapping[str, Tensor]]) -> Batch | None:
        """Run a batch with the launches of all calls recorded and run as one graph.

        None if the platform does not support recording, or the candidate's calls do not. Faults are
        those of ``batch``; after them, and after None, the runner can no longer be used.
        """
        return self._make(Kind.REPLAY, inputs)

    def _make(
        self,
        kind: Kind,
        inputs: Sequence[Mapping[str, Tensor]],
        repeats: int = 1,
        left_out: int | None = None,
    ) -> Batch | None:
        memory = self._ready(inputs)
        calls = len(inputs) * repeats
        if not 1 <= calls <= memory.slots:
            raise ValueError(f"a batch of {calls} calls, where {memory.slots} slots are loaded")
        order = random.SystemRandom().sample(range(memory.slots), len(inputs))
        with self._ending_on_fault():
            doing = f"in a batch of {calls} call{'s' if calls > 1 else ''}"
            if self._program.returns_on_host:  # before the inputs are there
                self._collect(doing)
            memory.prepare(order, inputs, repeats)
            held_up_ns = 0
            if self._program.on_device:
                self._arm(doing)
                held_up_ns = memory.fill(order, inputs)
            answer = self._ask_to_run(kind, calls, doing, left_out)
            held_up_ns += memory.take()
            if self._program.on_device:
                self._conversation.freeze(doing)
            if kind is Kind.REPLAY and not answer.values[0]:
                return None
            if self._program.abi == "torch":
                # A program could defer its work until here, but this ABI is for tasks' baselines.
                self._collect(doing)
                memory.take()
            if self._fetches:
                memory.fetch(order, self._conversation.read)
            memory.check(order, inputs)
        return self._batch(answer, held_up_ns, memory.read(order))

    def empty(self) -> Batch:
        """Run a batch of no calls, to calibrate the cost of a batch itself."""
        with self._ending_on_fault():
            doing = "in an empty batch"
            if self._program.returns_on_host:  # before the inputs are there
                self._collect(doing)
            if self._program.on_device:
                self._arm(doing)
            answer = self._ask_to_run(Kind.EMPTY, 0, doing)
            if self._program.on_device:
                self._conversation.freeze(doing)
        return self._batch(answer)

    def leave_out(self, after: int | None = 0) -> None:
        """Leave out all kernels from the ``after``-th launch on; None lets all of them run again.

        Launches that are left out succeed; PyTorch's copies and fills still run. Call it between
        batches. Raises ValueError for a program without a launch filter.
        """
        if self._launches is None:
            raise ValueError("launches cannot be left out without a launch filter")
        self._launches.order(*(() if after is None else (after,)))

    def launched(self) -> Counts | None:
        """The launches so far, by the runner's own record; None if they are not counted."""
        return self._launches.counts() if self._launches and self._open else None

    def said(self) -> str:
        """The end of the runner's output, safe to show; for people only."""
        return self._conversation.said()

    def close(self) -> None:
        """End the runner; may be called twice.

        Raises CandidateFault if its end shows a broken protocol, such as an answer that
        the candidate had prepared in advance, and if it cannot be ended.
        """
        if self._open:
            with self._ending_on_fault():
                seconds = self._policy.batch_seconds
                self._ask(Kind.BYE, Kind.GONE, seconds=seconds, doing="at its end")
            self._end()

    def kill(self) -> None:
        """End the runner without asking it; may be called twice.

        If it cannot be ended, it ends with its sandbox: the caller already has its fault.
        """
        with suppress(CandidateFault):
            self._end()

    def _end(self) -> None:
        if self._open:
            self._open = False
            self._forget_memory()
            if self._gating:
                self._gating.close()
            try:
                self._conversation.end()
            finally:
                if self._launches:
                    self._launches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None:
            self.close()
        else:
            self.kill()

    def _ask(self, kind: Kind, expected: Kind, *, seconds: float, doing: str, **how: Any) -> Answer:
        patience, began = max(0.0, min(seconds, self._left_seconds)), GRANTED.now()
        try:
            return self._conversation.ask(kind, expected, seconds=patience, doing=doing, **how)
        finally:
            self._left_seconds -= GRANTED.now() - began

    def _ask_to_load(
        self, kind: Kind, values: tuple[int, ...] = (), fds: Sequence[int] = ()
    ) -> Answer:
        seconds = self._policy.load_seconds
        doing = "while its config was loaded"
        return self._ask(kind, Kind.READY, seconds=seconds, doing=doing, values=values, fds=fds)

    def _collect(self, doing: str) -> None:
        """Have done what belongs to a batch, and is outside of both clocks."""
        seconds = self._policy.batch_seconds
        self._ask(Kind.COLLECT, Kind.READY, seconds=seconds, doing=doing)

    def _arm(self, doing: str) -> None:
        """Make a frozen runner wait for its next request without sleeping."""
        seconds = self._policy.batch_seconds
        self._ask(Kind.ARM, Kind.READY, seconds=seconds, doing=doing, freeze=False)

    def _ask_to_run(
        self, kind: Kind, calls: int, doing: str, left_out: int | None = None
    ) -> Answer:
        seconds = self._policy.batch_seconds + calls * self._policy.call_seconds
        armed = {"armed": True, "awake": self._policy.awake, "freeze": False}
        how = armed if self._program.on_device else {}
        guarded = guarding(self._program, self._policy)
        values = (calls, -1 if left_out is None else left_out, guarded)
        answer = self._ask(kind, Kind.DONE, seconds=seconds, doing=doing, values=values, **how)
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
            self._check_launches()
        except CandidateFault:
            # A refused launch is the cause of any later failure.
            self.kill()
            self._check_device()
            self._check_launches()
            raise
        except MachineFault:
            self.kill()
            self._check_device()
            raise

    def _check_launches(self) -> None:
        """Raise CandidateFault if a kernel was refused."""
        refusal = self._launches.refusal() if self._launches else ""
        if refusal:
            raise diagnosis.fault(Reason.KERNEL_BYPASSED, refusal, self._conversation.said())

    def _check_device(self) -> None:
        """Raise MachineFault if the device itself failed, for every process."""
        if self._program.on_device:
            from gpu import session

            session.check()

    def _batch(
        self, answer: Answer, held_up_ns: int = 0, outputs: tuple[Mapping[str, Tensor], ...] = ()
    ) -> Batch:
        reported_ns, wall_ns = answer.values[1], answer.wall_ns + held_up_ns
        if self._program.on_device:  # the processor only waits: its time is no measure of the work
            return Batch(outputs, reported_ns, wall_ns, launches=self._launches_since())
        s = answer.spent
        return Batch(outputs, reported_ns, wall_ns, s.thread_ns, s.process_ns, s.waited_ns)

    def _launches_since(self) -> int:
        """The number of launches since the previous call of this method."""
        counts = self.launched()
        before, self._launched = self._launched, counts.launches if counts else 0
        return self._launched - before

    def _forget_memory(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
            self._conversation.block = None
