"""Runs commands of an agent in its sandbox."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from order import fill
from sandbox import protocol  # type: ignore[import-not-found]
from sandbox.namespaces import Limits, View, fork_contained  # type: ignore[import-not-found]
from sandbox.output import BoundedOutput  # type: ignore[import-not-found]
from sandbox.supervisor import Orders, supervise  # type: ignore[import-not-found]

PROCESSES = 400
OUTPUT_BYTES = 8 << 20
_FILE_BYTES = 1 << 30
_NICE = 10  # below the processes that watch it and measure for it
_DATA_FACTOR = 4  # the factor by which a process may reserve more than the tree's memory
_LINE_BYTES = 1 << 20
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Command:
    """A command, as templates, since its ports are known only inside its network.

    ``listeners`` names sockets that are opened on its loopback before it starts; each becomes a
    variable of that name, ``http://127.0.0.1:PORT``.
    """

    argv: Sequence[str]
    variables: Mapping[str, str] = field(hash=False)
    environment: Callable[[Mapping[str, str]], Mapping[str, str]]
    stdin: str = "/dev/null"
    listeners: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a command ended. ``limit`` names the limit that ended it, or is empty.

    ``exit_code`` is None if kabuild killed it; 128 + N after signal N of its own. ``problem`` says
    why it could not be started.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    limit: str
    seconds: float
    problem: str = ""


class Contained:
    """One command in its own sandbox; its process tree is dead when ``wait`` returns.

    ``sockets`` are its listening sockets, open in its network; processes outside it can accept on
    them.
    """

    def __init__(self, command: Command, view: View, seconds: float, memory: int) -> None:
        self._control, its_control = socket.socketpair()
        self._news, its_news = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._streams: list[int] = []
        lent = []
        for _ in range(2):
            read, write = os.pipe2(os.O_CLOEXEC)
            self._streams.append(read)
            lent.append(write)
        orders = Orders("/", (), True, seconds, None, memory, PROCESSES, 1)  # noqa: FBT003
        out = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._pid = fork_contained(
                view,
                _limits(memory),
                lambda: _become(command, its_news, (lent[0], lent[1])),
                keep_fds=(*lent, its_news.fileno()),
                seccomp="strict",
                supervisor=lambda worker: supervise(orders, worker, its_control.fileno(), out),
                supervisor_fds=(its_control.fileno(), out),
            )
        finally:
            for fd in (*lent, out):
                os.close(fd)
            its_news.close()
            its_control.close()
        self.sockets = self._receive_sockets(len(command.listeners))

    def stop(self) -> None:
        """Kill it, if it has not ended; ``wait`` returns soon after."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._control.sendall(b"stop")

    def wait(
        self,
        on_line: Callable[[bytes], None] = lambda _: None,
        watched: Mapping[int, Callable[[bytes], None]] | None = None,
    ) -> Ended:
        """Wait for its end, passing each line of stdout to ``on_line``.

        Data from the pipes ``watched`` is passed to their callbacks.
        """
        kept = {fd: BoundedOutput(OUTPUT_BYTES) for fd in self._streams}
        line = bytearray()
        poll = select.poll()
        waiting = {self._control.fileno(), *kept}
        others = watched or {}
        for fd in (*waiting, *others):
            poll.register(fd, select.POLLIN)
        report: dict[str, Any] = {}
        while waiting:
            for fd, _ in poll.poll():
                data = b""
                if fd in others:
                    data = os.read(fd, _READ_BYTES)
                    others[fd](data)
                elif fd == self._control.fileno():
                    received = protocol.receive(self._control)
                    report = received[0] if received else {}
                else:
                    data = os.read(fd, _READ_BYTES)
                    kept[fd].add(data)
                if fd == self._streams[0]:
                    _split(line, data, on_line)
                if not data:
                    poll.unregister(fd)
                    waiting.discard(fd)
        os.waitpid(self._pid, 0)
        return self._ended(report, *(kept[fd].value() for fd in self._streams))

    def _ended(self, report: Mapping[str, Any], stdout: bytes, stderr: bytes) -> Ended:
        if "status" not in report:
            raise OSError("the sandbox of the agent ended without a report")
        status = report["status"]
        code = None if status is None else os.waitstatus_to_exitcode(status)
        if code is not None and code < 0:
            code = 128 - code
        problem = self._news.recv(_READ_BYTES).decode()
        for fd in self._streams:
            os.close(fd)
        self._news.close()
        self._control.close()
        limit = report["limit"] or ""
        return Ended(stdout, stderr, code, limit, report["wall_seconds"], problem)

    def _receive_sockets(self, count: int) -> list[socket.socket]:
        if not count:
            return []
        _, fds, _, _ = socket.recv_fds(self._news, 16, count)
        return [socket.socket(fileno=fd) for fd in fds]


def _become(command: Command, news: socket.socket, streams: tuple[int, int]) -> int:
    """In the sandbox: open the sockets, then become the command."""
    known = dict(command.variables)
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in command.listeners]
    for name, listening in zip(command.listeners, sockets, strict=True):
        known[name] = f"http://127.0.0.1:{listening.getsockname()[1]}"
    if sockets:
        socket.send_fds(news, [b"ports"], [listening.fileno() for listening in sockets])
        for listening in sockets:
            listening.close()
    news.set_inheritable(False)
    os.nice(_NICE)
    for number, fd in enumerate((os.open(command.stdin, os.O_RDONLY), *streams)):
        os.dup2(fd, number)
        os.close(fd)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores it
        signal.signal(number, signal.SIG_DFL)
    argv = [fill(argument, known) for argument in command.argv]
    environment = dict(command.environment(known))
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell, on purpose
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, FileNotFoundError):
            why = f"its sandbox has no such program; PATH is {environment['PATH']}"
        news.send(f"cannot start {argv[0]}: {why}".encode())
    return 127


def _split(line: bytearray, data: bytes, on_line: Callable[[bytes], None]) -> None:
    """Collect a stream's lines; overlong ones are dropped."""
    *complete, rest = data.split(b"\n")
    for part in complete:
        on_line(bytes(line + part))
        line.clear()
    if len(line) + len(rest) <= _LINE_BYTES:
        line += rest


def _limits(memory: int) -> Limits:
    return Limits(memory_bytes=memory * _DATA_FACTOR, processes=PROCESSES, file_bytes=_FILE_BYTES)
