"""The judge's end of a runner's control socket and output pipe.

No input is trusted. A message that does not have the protocol's exact form is Malformed. The
runner's output is truncated and made printable, for people only.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Sequence

from base.granted_time import GRANTED, PIECE_SECONDS

from runners.protocol import SIZE, Message

_CHUNK = 1 << 16


class Hangup(Exception):  # noqa: N818 (an event, no error of ours)
    """The runner's end is closed."""


class Silence(Exception):  # noqa: N818
    """The deadline passed without a message."""


class Malformed(Exception):  # noqa: N818
    """Something other than a message arrived."""


class Channel:
    """Owns the judge's control socket and the read end of the runner's output pipe."""

    def __init__(self, control: socket.socket, output: int, kept_bytes: int) -> None:
        self._control = control
        self._output = output
        self._kept_bytes = kept_bytes
        self._tail = b""
        control.settimeout(0)
        os.set_blocking(output, False)

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Send a message, with descriptors. Raises Hangup if the other end is closed."""
        try:
            socket.send_fds(self._control, [message.encode()], list(fds))
        except (BrokenPipeError, ConnectionResetError, BlockingIOError) as error:
            raise Hangup from error

    def receive(self, deadline: float, *, awake: bool = False) -> Message:
        """The next message before ``deadline`` (of ``GRANTED``).

        ``awake`` polls without sleeping, so that no time is lost to waking up. Raises Hangup,
        Silence or Malformed.
        """
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._output, select.POLLIN)
        while True:
            left, sleep = deadline - GRANTED.now(), GRANTED.sleep()
            patience = 0.0 if awake else max(0.0, min(left, PIECE_SECONDS))
            ready = dict(poll.poll(patience * 1000))
            sleep.over()
            if self._control.fileno() in ready:
                return self._take()
            if left <= 0:
                raise Silence
            if ready and not self._read_output():
                poll.unregister(self._output)  # closed at the other end

    def speaks(self, seconds: float) -> bool:
        """Whether a message or a hangup comes within ``seconds``; reads nothing."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def is_quiet(self) -> bool:
        """Whether no further message has arrived. Call it while the runner is frozen."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        return not poll.poll(0)

    def text(self) -> str:
        """The end of the runner's output, safe to show."""
        for _ in range(64):  # a pipe's worth, so as not to wait for a runner that keeps printing
            if not self._read_output():
                break
        decoded = self._tail.decode(errors="replace")
        shown = (c if c == "\n" or c.isprintable() else "?" for c in decoded.expandtabs())
        return "".join(shown).strip()

    def close(self) -> None:
        """Close both ends; may be called twice."""
        self._control.close()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def _take(self) -> Message:
        try:
            # No room for descriptors: the kernel drops those that a runner sends.
            data, _, flags, _ = self._control.recvmsg(SIZE + 1)
        except ConnectionResetError as error:
            raise Hangup from error
        if not data:
            raise Hangup
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise Malformed("a message that is too long, or with descriptors")
        try:
            return Message.decode(data)
        except ValueError as error:
            raise Malformed(str(error)) from None

    def _read_output(self) -> bool:
        """Read available output and keep its end; returns whether there was any."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._output, _CHUNK) if self._output >= 0 else b""
        self._tail = (self._tail + data)[-self._kept_bytes :]
        return bool(data)
