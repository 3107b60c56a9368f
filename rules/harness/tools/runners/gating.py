"""A batch behind a gate: queue the calls, deliver their inputs, open, and look at the outputs.

judge                                        runner
slots hold nothing
SHUT                                         a kernel fills the device; all calls are queued
                                             QUEUED
the inputs are delivered, caches emptied
the device has switched back to the runner
the page is written: time begins             the calls run
                                             the device is idle: the page is written
time ends; a look at the outputs
all outputs are copied, the runner frozen
WAIT                                         DONE
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from base.program import Gated, MachineFault
from gpu.gate_page import ENDED, IDLE, GatePage, Moment
from terms.reasons import Reason

from runners import diagnosis
from runners.conversation import Answer, Conversation, Nudge
from runners.protocol import Kind

if TYPE_CHECKING:
    from torch import Tensor

    from runners.config_memory import ConfigMemory

PATIENCE = 0.5  # seconds to queue a batch; a runner that takes longer waits for the device
SETTLED_NS = 250_000
"""Wait for the device to switch from the judge's context to the runner's, which takes 180 us."""

_LATE_NS = 300_000  # from the end of the stream until an otherwise unused device is idle
_AT_END, _WHEN_IDLE = 0, 1  # looks

_HELD_SECONDS = 10.0  # less than the gate's own time limit


class Gating:
    """One runner's gate.

    ``ask`` is the runner's own method for requests, which keeps track of the time left.
    """

    def __init__(self, conversation: Conversation, ask: Callable[..., Answer]) -> None:
        self._conversation = conversation
        self._ask = ask
        self._page = GatePage()

    def install(self, seconds: float) -> bool:
        """Prepare the runner for gates; returns whether its platform has them."""
        doing = "while its gate was made"
        how: dict[str, Any] = {"seconds": seconds, "doing": doing, "fds": (self._page.fd,)}
        return bool(self._ask(Kind.GATE, Kind.READY, **how).values[0])

    def batch(
        self,
        memory: ConfigMemory,
        order: Sequence[int],
        inputs: Sequence[Mapping[str, Tensor]],
        *,
        repeats: int,
        at_once: bool,
        seconds: float,
        collect: bool,
    ) -> Gated:
        """Run one batch. With ``at_once`` the gate opens before the runner's context is back.

        Without inputs the batch is empty. With ``collect`` the results of calls are copied.

        Raises CandidateFault.
        """
        calls = len(inputs) * repeats
        doing = f"in a batch of {calls} call{'s' if calls > 1 else ''} behind the gate"
        memory.stage(order, inputs, repeats)
        ticket = self._page.shut()
        stuck = _Stuck(self._page, memory)
        began = time.monotonic()
        answer = self._ask(
            Kind.SHUT,
            Kind.QUEUED,
            seconds=seconds,
            doing=doing,
            values=(calls, ticket),
            freeze=False,
            nudge=Nudge(PATIENCE, stuck.open),
        )
        count, launch_ns, *_ = answer.values
        if count != calls or launch_ns < 0:
            raise diagnosis.violation(f"queued {count} calls in {launch_ns} ns {doing}")
        opened = stuck.opened or self._open(memory, began, at_once=at_once)
        ended = self._page.await_word(ENDED, seconds, self._conversation.spoke)
        memory.peek(_AT_END)
        idle = self._page.await_word(IDLE, seconds, self._conversation.spoke)
        memory.peek(_WHEN_IDLE)
        memory.take()
        self._conversation.freeze(doing)
        if not collect and not memory.agrees(_WHEN_IDLE):
            what = "reported completion while its outputs were still being written"
            raise diagnosis.fault(Reason.CLOCK_MISMATCH, f"{what} {doing}")
        done = self._ask(Kind.WAIT, Kind.DONE, seconds=seconds, doing=doing)
        if done.values[0] != calls or done.values[1] < 0:
            raise diagnosis.violation(f"reported {done.values[0]} calls {doing}")
        if collect and calls:
            self._ask(Kind.COLLECT, Kind.READY, seconds=seconds, doing=doing)
            memory.take()
        memory.check_staged(order)
        held = stuck.opened is None
        joined = idle.ns - ended.ns < _LATE_NS and (collect or memory.agrees(_AT_END))
        end = ended if joined else idle
        return Gated(
            memory.read(order),
            held,
            end.ns - opened.ns,
            done.values[1],
            launch_ns,
            opened.doubt_ns + end.doubt_ns,
        )

    def _open(self, memory: ConfigMemory, began: float, *, at_once: bool) -> Moment:
        memory.deliver()
        if not at_once:
            settled = time.monotonic_ns() + SETTLED_NS
            while time.monotonic_ns() < settled:
                pass
        if time.monotonic() - began > _HELD_SECONDS:
            raise MachineFault("this machine was so busy that a gate was not opened in time")
        return self._page.open()

    def close(self) -> None:
        """Release the page; may be called twice."""
        self._page.close()


class _Stuck:
    """Opens the gate for a runner that waits for the device before all calls are queued."""

    def __init__(self, page: GatePage, memory: ConfigMemory) -> None:
        self._page = page
        self._memory = memory
        self.opened: Moment | None = None

    def open(self) -> None:
        """Deliver the inputs, so that honest work still uses them, and open the gate."""
        self._memory.deliver()
        self.opened = self._page.open()
