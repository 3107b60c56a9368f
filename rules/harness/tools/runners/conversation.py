"""Sends requests to a runner and checks its answers; every violation is a named fault.

The runner is frozen whenever the judge is not waiting for it. It resumes only when the next
request is already in its socket, so it can neither finish work late nor begin work early.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from base.granted_time import GRANTED, Period
from base.program import CandidateFault, MachineFault
from terms.reasons import Reason

from runners import diagnosis, killed
from runners.call_block import CallBlock
from runners.channel import Channel, Hangup, Malformed, Silence
from runners.control_block import ControlBlock
from runners.protocol import FaultCode, Kind, Message
from runners.sched_stats import Scheduled
from runners.warden import Counted, Unstoppable, Warden

_SELF = Path("/proc/thread-self")
_LAST_WORDS_SECONDS = 5.0  # for a process to end that has hung up or reported a signal


@dataclass(frozen=True)
class Answer:
    """A runner's answer, and how long it ran until it was frozen again.

    The time ends with the freeze, not with the message: otherwise a candidate that answers too
    early could work on unmeasured, and delay the freeze by keeping the machine busy. ``spent`` is
    what the kernel counted meanwhile, including the judge's own wait; it is empty if the runner was
    not frozen at the end.
    """

    values: tuple[int, ...]
    wall_ns: int
    spent: Counted


@dataclass(frozen=True)
class Nudge:
    """An action to take once if a runner has been silent for this long."""

    after_seconds: float
    act: Callable[[], None]


class Conversation:
    """One runner's channel and warden; ``processor_limit`` is in seconds.

    Attributes:
        block: the loaded config, for names in faults.
    """

    def __init__(self, channel: Channel, warden: Warden, processor_limit: int = 0) -> None:
        self._channel = channel
        self._warden = warden
        self._processor_limit = processor_limit
        self._kills = killed.kills()
        self._counted = Counted()
        self.block: ControlBlock | CallBlock | None = None

    def await_start(self, seconds: float) -> None:
        """Wait until the runner's own code is running.

        No candidate is loaded before that, so any failure is the machine's fault: raises
        MachineFault.
        """
        try:
            message = self._channel.receive(GRANTED.now() + seconds)
        except (Hangup, Silence, Malformed) as error:
            status = self._warden.wait(0)
            what = type(error).__name__.lower() if status is None else f"wait status {status}"
            raise MachineFault(f"a runner did not start: {what}\n{self._channel.text()}") from error
        if message != Message(Kind.READY, 0, message.values):
            raise MachineFault(f"a runner did not start\n{self._channel.text()}")
        self.freeze("at its start")

    def ask(
        self,
        kind: Kind,
        expected: Kind,
        *,
        seconds: float,
        doing: str,
        values: tuple[int, ...] = (),
        fds: Sequence[int] = (),
        armed: bool = False,
        awake: bool = False,
        freeze: bool = True,
        nudge: Nudge | None = None,
    ) -> Answer:
        """Send a request and return its answer. Raises CandidateFault for anything else.

        Args:
            seconds: how long to wait, in granted time.
            doing: what the runner does meanwhile, as a phrase that ends a fault's message.
            armed: the runner is not frozen, and waits without sleeping.
            awake: wait for the answer without sleeping.
            freeze: stop the runner once it has answered, and count the time until then.
            nudge: an action that may make a silent runner answer.
        """
        request = Message(kind, secrets.randbits(64), values)
        own_ns = Scheduled.of(_SELF).waited_ns
        period = GRANTED.period()
        started = time.monotonic_ns()
        try:
            self._channel.send(request, fds)
            if not armed:
                self._warden.thaw()
            if nudge is not None:
                self._wait_or(nudge)
            message = self._receive(period, GRANTED.now() + seconds, awake=awake)
        except Hangup:
            self._fail_by_end(doing)
        except Silence:
            what = f"gave no answer within {seconds:g} s {doing}"
            raise diagnosis.fault(Reason.TIMEOUT, what, self._channel.text()) from None
        except Malformed as error:
            raise diagnosis.violation(f"sent {error} {doing}") from None
        if message.nonce != request.nonce:
            raise diagnosis.violation(f"sent an unrequested {message.kind.name} {doing}")
        if message.kind is Kind.FAULT:
            self._fail_by_complaint(message, doing)
        if message.kind is not expected:
            raise diagnosis.violation(f"answered with {message.kind.name} {doing}")
        frozen = freeze and expected is not Kind.GONE
        if frozen:
            self.freeze(doing)
        wall_ns = time.monotonic_ns() - started
        spent = self._spent(Scheduled.of(_SELF).waited_ns - own_ns) if frozen else Counted()
        period.withhold(spent.starved_ns / 1e9)
        return Answer(message.values, wall_ns, spent)

    def _receive(self, period: Period, deadline: float, *, awake: bool) -> Message:
        """The next message. Time that the runner waits for processors is not counted.

        Raises what ``Channel.receive`` raises.
        """
        while True:
            try:
                return self._channel.receive(deadline, awake=awake)
            except Silence:
                period.withhold(self._warden.count().since(self._counted).starved_ns / 1e9)
                if GRANTED.now() >= deadline:
                    raise

    def _wait_or(self, nudge: Nudge) -> None:
        if not self._channel.speaks(nudge.after_seconds):
            nudge.act()

    def read(
        self, ranges_fd: int, target_fd: int, count: int, lent_fds: tuple[int, ...] = ()
    ) -> bool:
        """Copy from the frozen runner's memory (``Warden.read``); False if that is not allowed."""
        return self._warden.read(ranges_fd, target_fd, count, lent_fds)

    def can_read(self) -> bool:
        """Whether the kernel lets a warden read a runner's memory, and the lists of its pages."""
        fd = os.memfd_create("kabuild", os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, 1)
            return self._warden.read(fd, fd, 0)
        finally:
            os.close(fd)

    def spoke(self) -> bool:
        """Whether the runner has sent something, or hung up."""
        return not self._channel.is_quiet()

    def freeze(self, doing: str) -> None:
        """Stop the runner, which must not have sent anything further. Raises CandidateFault."""
        try:
            status = self._warden.freeze()
        except Unstoppable:
            raise self._unstoppable(f"after its answer {doing}") from None
        if status is not None:
            raise self._ended(status, f"after its answer {doing}")
        if not self._channel.is_quiet():
            raise diagnosis.violation(f"sent more than one answer {doing}")

    def _spent(self, own_ns: int) -> Counted:
        """The counts since the previous call of this method."""
        before, self._counted = self._counted, self._warden.count()
        spent = self._counted.since(before)
        return replace(spent, waited_ns=spent.waited_ns + own_ns)

    def said(self) -> str:
        """The end of the runner's output, safe to show."""
        return self._channel.text()

    def end(self) -> None:
        """Kill the runner and hang up. Raises CandidateFault if it cannot be killed."""
        try:
            self._warden.kill()
        except Unstoppable:
            raise self._unstoppable("at its end") from None
        finally:
            self.hang_up()

    def hang_up(self) -> None:
        """Close both sockets, if there is no runner or it has ended."""
        self._warden.close()
        self._channel.close()

    def _unstoppable(self, when: str) -> CandidateFault:
        """The fault of a runner in a system call that no signal interrupts."""
        what = f"could not be stopped {when}: one of its system calls does not return"
        return diagnosis.fault(Reason.TIMEOUT, what, self._channel.text())

    def _fail_by_end(self, doing: str) -> NoReturn:
        status = self._warden.wait(_LAST_WORDS_SECONDS)
        if status is None:
            said = self._channel.text()
            raise diagnosis.violation(f"closed its control socket {doing}", said)
        raise self._ended(status, doing)

    def _ended(self, status: int, doing: str) -> CandidateFault:
        """The fault of a runner that has ended. Raises MachineFault if other programs caused it."""
        said = self._channel.text()
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            return diagnosis.ended(status, doing, said)
        return killed.fault(
            self._warden.death(),
            before=self._kills,
            lent_bytes=sum(self.block.sizes) if self.block else 0,
            processor_limit=self._processor_limit,
            doing=doing,
            said=said,
        )

    def _fail_by_complaint(self, message: Message, doing: str) -> NoReturn:
        try:
            code = FaultCode(message.values[0])
        except ValueError:
            raise diagnosis.violation(f"sent an unknown fault {doing}") from None
        if code is FaultCode.MACHINE:
            raise diagnosis.violation(f"reported a fault of the machine {doing}")
        if code is not FaultCode.SIGNAL:
            raise diagnosis.complained(message, self.block, doing, self._channel.text())
        status = self._warden.wait(_LAST_WORDS_SECONDS)
        said = self._channel.text()
        if status is None:
            raise diagnosis.violation(f"reported a fatal signal, but did not end {doing}", said)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            raise self._ended(status, doing)
        raise diagnosis.crashed(message, status, self.block, doing, said)
