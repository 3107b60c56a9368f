"""Programs in forks of a process that has imported what all of them need, such as torch.

Each program is a process of its own, whose globals and loaded libraries end with it.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from kabuild.sandbox import protocol

ROOT = Path(__file__).parents[2]


class Forks:
    """The first process, which has imported ``modules`` in ``env``; a context manager."""

    def __init__(self, *modules: str, env: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), *modules],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        """How the program ended, and what it printed."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            message = {"program": program}
            protocol.send(self._channel, message, [out.fileno(), err.fileno()])
            answer = protocol.receive(self._channel)
            assert answer is not None, "the first process has died"
            out.seek(0)
            err.seek(0)
            printed = out.read().decode(), err.read().decode()
            return subprocess.CompletedProcess([program], answer[0]["code"], *printed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()
        self._process.wait()


def serve(channel: socket.socket) -> None:
    """Fork a process for every program, until the other end is closed."""
    while (received := protocol.receive(channel)) is not None:
        message, streams = received
        if not (pid := os.fork()):
            channel.close()
            _become(message["program"], streams)
        for fd in streams:
            os.close(fd)
        _, status = os.waitpid(pid, 0)
        protocol.send(channel, {"code": os.waitstatus_to_exitcode(status)})


def _become(program: str, streams: list[int]) -> NoReturn:
    for number, fd in enumerate(streams, 1):
        os.dup2(fd, number)
        os.close(fd)
    code = 0
    try:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - printed as an interpreter prints it
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    serve(socket.socket(fileno=int(sys.argv[1])))
