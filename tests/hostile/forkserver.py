"""Calls in forks of a process that has kabuild imported: thirty a second instead of four.

Each call is a new process with directory, environment, streams, limits and user of its own, and
becomes the program by its own ``main``. The first process starts nothing but these.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, NoReturn

from kabuild.sandbox import protocol
from tests.hostile.call import Call, Ended
from tests.testkit.modules import modules

_NOBODY = 65534


class Forkserver:
    """The first process, from outside; it ends with this one. One call at a time."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def run(self, call: Call) -> Ended:
        """Make a call and wait for its end. Raises ConnectionError when the process is gone."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            protocol.send(self._channel, call.message(), [out.fileno(), err.fileno()])
            received = protocol.receive(self._channel)
            if received is None:
                raise ConnectionError("the first process is gone")
            out.seek(0)
            err.seek(0)
            return Ended(out=out.read(), err=err.read(), **received[0])

    def close(self) -> None:
        """End it."""
        self._channel.close()
        self.process.wait()


def serve(channel: socket.socket) -> None:
    """Fork a process for every request, until nobody is left to ask."""
    for name in modules():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while (received := protocol.receive(channel)) is not None:
        message, streams = received
        began = time.monotonic()
        if not (pid := os.fork()):
            channel.close()
            _become(message, streams)
        for fd in streams:
            os.close(fd)
        status, usage, hung = _wait(pid, message)
        ended = {
            "code": os.waitstatus_to_exitcode(status),
            "seconds": time.monotonic() - began,
            "memory": usage.ru_maxrss * 1024,
            "hung": hung,
        }
        protocol.send(channel, ended)


def _wait(pid: int, message: dict[str, Any]) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for the end of a call, and help it to one."""
    handle = os.pidfd_open(pid)
    if message["kill"]:
        _kill(pid, handle, message)
    hung = not select.select([handle], [], [], message["seconds"])[0]
    if hung:  # say where, then end
        signal.pidfd_send_signal(handle, signal.SIGABRT)
        if not select.select([handle], [], [], 2.0)[0]:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
    _, status, usage = os.wait4(pid, 0)
    return status, usage, hung


def _kill(pid: int, handle: int, message: dict[str, Any]) -> None:
    number, after = message["kill"]
    if select.select([handle], [], [], after)[0]:
        return
    for _ in range(2 if message["again"] else 1):
        with contextlib.suppress(ProcessLookupError):
            if message["group"]:
                os.killpg(pid, number)
            else:
                signal.pidfd_send_signal(handle, number)


def _become(message: dict[str, Any], streams: list[int]) -> NoReturn:
    """Become the program."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the program has not begun
    faulthandler.enable(os.dup(streams[1]), all_threads=True)
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(message["cwd"])
    if message["gone"]:
        with contextlib.suppress(OSError):
            os.rmdir(message["cwd"])  # noqa: PTH106
    for number, name, fd in zip((1, 2), (message["out"], message["err"]), streams, strict=True):
        _connect(number, name, fd)
    os.environ.clear()
    os.environ.update(message["env"])
    if message["user"]:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(message["user"])
    for number, value in message["limits"]:
        resource.setrlimit(number, (value, value))
    sys.argv[1:] = message["argv"]
    from kabuild.base.errors import ExitCode
    from kabuild.cli.main import main

    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    except KeyboardInterrupt:
        os._exit(ExitCode.INTERRUPTED)
    main()


def _connect(number: int, name: str, fd: int) -> None:
    """What a shell does for ``>file``, ``>&-``, ``>/dev/full`` and ``| true``."""
    if name == "kept":
        os.dup2(fd, number)
    elif name == "closed":
        os.close(number)
        setattr(sys, ("stdout", "stderr")[number - 1], None)  # as Python finds it at its start
    elif name == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)
    else:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, number)
        os.close(writer)
    os.close(fd)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
