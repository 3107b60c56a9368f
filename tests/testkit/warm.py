"""Calls of the program in forks of a process that has it imported, and interpreters at hand.

Every call is a new process with directory, environment and streams of its own, as is the program
when it is started; but what any build begins with, above all an interpreter that imports torch,
is there already. Interpreters that a call had to start are started again in the first process,
for the calls to come. Whoever tests how the program starts, is stopped or dies starts it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kabuild import sandbox
from kabuild.loading.roots import builtin_root
from kabuild.loading.rule_index import RULES, RuleIndex
from kabuild.sandbox import protocol
from kabuild.sandbox.process import Spawner
from kabuild.sandbox.zygote_process import ZygoteProcess
from tests.testkit.modules import modules

ROOT = Path(__file__).parents[2]
_AT_START = ("LD_", "PYTHON")  # what a process heeds only as it starts
_END_SECONDS = 10.0


class KeptSpawner(Spawner):
    """Lasts for all calls: those that use it do not close it."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = -1

    def close(self) -> None:
        """Leave all as it is: what a call started itself ends with its process."""

    def start(self, key: Any) -> None:
        """Have the interpreter ``key`` ready."""
        zygote = self._take(key)
        zygote.start()
        zygote.users -= 1

    def _take(self, key: Any) -> ZygoteProcess:
        if key not in self._zygotes and self.wanted >= 0:
            os.write(self.wanted, json.dumps(key).encode() + b"\n")
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
        wanted, spawner.wanted = os.pipe()
        if not (pid := os.fork()):
            channel.close()
            os.close(wanted)
            _call(message, streams)
        for fd in (spawner.wanted, *streams):
            os.close(fd)
        spawner.wanted = -1
        _, status = os.waitpid(pid, 0)
        protocol.send(channel, {"code": os.waitstatus_to_exitcode(status)})
        with open(wanted) as lines:
            for interpreter, preload, env in map(json.loads, lines):
                spawner.start((interpreter, tuple(preload), tuple(map(tuple, env))))
    Spawner.close(spawner)


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
