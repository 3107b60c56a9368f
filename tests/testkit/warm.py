"""Calls of the program in forks of a process that has it imported, and interpreters at hand.

Every call is a new process with directory, environment and streams of its own, as is the program
when it is started; but what any build begins with, above all an interpreter that imports torch,
is there already. An interpreter that a call lacks is started by the first process, for it and for
the calls to come. Whoever tests how the program starts, is stopped or dies starts it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kabuild import sandbox
from kabuild.loading.roots import builtin_root
from kabuild.loading.rule_index import RULES, RuleIndex
from kabuild.sandbox import protocol
from kabuild.sandbox.process import Spawner
from kabuild.sandbox.zygote_process import PreloadRefused, ZygoteLost, ZygoteProcess
from tests.testkit.modules import modules

ROOT = Path(__file__).parents[2]
_AT_START = ("LD_", "PYTHON")  # what a process heeds only as it starts
_END_SECONDS = 10.0


class LentZygote(ZygoteProcess):
    """A zygote that the first process has started."""

    def __init__(self, key: Any, channel: socket.socket) -> None:
        super().__init__(key[0], key[1], dict(key[2]))
        self._channel = channel

    def start(self) -> None:
        """Do nothing: it is ready."""


class KeptSpawner(Spawner):
    """Lasts for all calls: those that use it do not close it."""

    def __init__(self) -> None:
        super().__init__()
        self._lender: socket.socket | None = None
        self._asked: set[Any] = set()
        self._asking = threading.Lock()

    def borrow(self, lender: socket.socket) -> None:
        """Ask the process at the other end for what is missing, once for each key."""
        self._lender = lender

    def lend(self, borrower: socket.socket, key: Any) -> None:
        """Start the interpreter ``key`` for this call and those to come."""
        zygote = self._zygotes.setdefault(key, ZygoteProcess(key[0], key[1], dict(key[2])))
        try:
            zygote.start()
        except (PreloadRefused, ZygoteLost):
            protocol.send(borrower, {"lent": False})  # the call finds out by itself
        else:
            assert zygote._channel is not None
            protocol.send(borrower, {"lent": True}, [zygote._channel.fileno()])

    def make_room(self) -> None:
        """End interpreters beyond those that a spawner keeps; when no call uses them."""
        for idle in self._surplus():
            idle.close()

    def close(self) -> None:
        """Leave all as it is: what a call started itself ends with its process."""

    def _take(self, key: Any) -> ZygoteProcess:
        with self._asking:
            if self._lender and key not in self._zygotes and key not in self._asked:
                self._asked.add(key)
                protocol.send(self._lender, {"key": key})
                answer = protocol.receive(self._lender)
                assert answer is not None, "the first process is gone"
                if answer[0]["lent"]:
                    zygote = LentZygote(key, socket.socket(fileno=answer[1][0]))
                    with self._lock:
                        self._zygotes[key] = zygote
        return super()._take(key)


class WarmProgram:
    """The first process, from outside; it ends with this one. One call at a time."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def serves(self, environment: Mapping[str, str]) -> bool:
        """Whether a process that is forked can have this environment."""
        names = {*environment, *self._environment}
        return all(
            environment.get(name) == self._environment.get(name)
            for name in names
            if name.startswith(_AT_START)
        )

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """The exit code of ``kabuild ARGUMENTS``, and what it printed."""
        message = {"argv": arguments, "cwd": str(cwd), "env": dict(environment)}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            self._channel.settimeout(timeout)
            try:
                protocol.send(self._channel, message, [out.fileno(), err.fileno()])
                answer = protocol.receive(self._channel)
                assert answer is not None, "the first process is gone"
            except (OSError, AssertionError):  # among them TimeoutError
                self._kill()
                warm.cache_clear()
                raise
            out.seek(0)
            err.seek(0)
            return answer[0]["code"], out.read().decode(), err.read().decode()

    def close(self) -> None:
        """End it, and a call that it is at."""
        self._channel.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@functools.cache
def warm() -> WarmProgram:
    """The first process of this one."""
    return WarmProgram()


def serve(channel: socket.socket) -> None:
    """Fork a process for every request, until nobody is left to ask."""
    spawner = KeptSpawner()
    sandbox.Spawner = lambda: spawner  # type: ignore[assignment,misc]
    for name in modules():
        importlib.import_module(name)
    _import_rules()
    gc.collect()
    gc.freeze()  # so that no fork touches, hence copies, what is there already
    while (received := protocol.receive(channel)) is not None:
        message, streams = received
        ours, theirs = socket.socketpair()
        if not (pid := os.fork()):
            channel.close()
            ours.close()
            spawner.borrow(theirs)
            _call(message, streams)
        for fd in streams:
            os.close(fd)
        theirs.close()
        with ours, contextlib.suppress(OSError):  # a call may be killed as it asks
            while (asked := protocol.receive(ours)) is not None:
                spawner.lend(ours, _key(asked[0]["key"]))
        _, status = os.waitpid(pid, 0)
        protocol.send(channel, {"code": os.waitstatus_to_exitcode(status)})
        spawner.make_room()
    Spawner.close(spawner)


def _key(plain: Any) -> Any:
    """A key of zygotes, as it was before it was sent."""
    interpreter, preload, env = plain
    return interpreter, tuple(preload), tuple(map(tuple, env))


def _import_rules() -> None:
    """Import the rules that ship, for all calls in workspaces that have no rules of their own."""
    shipped = RuleIndex((builtin_root() / RULES,))
    shipped.gates()
    anew = RuleIndex._package_name

    def imported(index: RuleIndex) -> str:
        *own, last = index.roots
        found = last == shipped.roots[0] and not any(root.exists() for root in own)
        return anew(shipped if found else index)

    RuleIndex._package_name = imported  # type: ignore[method-assign,assignment]


def _call(message: dict[str, Any], streams: list[int]) -> NoReturn:
    """Become the program."""
    for number, fd in enumerate(streams, 1):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(message["cwd"])
    os.environ.clear()
    os.environ.update(message["env"])
    sys.argv[1:] = message["argv"]
    from kabuild.cli.main import main

    main()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
