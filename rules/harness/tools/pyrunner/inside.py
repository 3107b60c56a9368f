"""Programs in the runner's own process: all but ``python`` programs on the CPU."""

from __future__ import annotations

import gc
import importlib
from typing import Any

from base.program import Program
from runners import confinement

from pyrunner.calls import Calls, Ground
from pyrunner.compiled import compiled
from pyrunner.module import Entry, load_entry


class Inside:
    """The ``Subject`` of programs that share the runner's process."""

    def __init__(self, program: Program, ground: Ground) -> None:
        self._program = program
        self._ground = ground
        self._entry: Entry | None = None
        self._functions: Any = None
        self._calls: Calls | None = None

    def start(self) -> None:
        """Import the program."""
        path = confinement.candidate_path(self._program)
        if self._program.abi == "call":
            tree = importlib.import_module("pyrunner_call.call_tree")
            self._functions = tree.Functions.load(self._program, path)
        else:
            self._entry = compiled(self._program, load_entry(self._program, path))
        gc.freeze()  # later collections then scan only what the calls have created

    def load(self, fds: list[int]) -> None:
        """Map a config's buffers."""
        self._calls = None
        if self._functions is not None:
            called = importlib.import_module("pyrunner_call.called")
            self._calls = called.Called(self._functions, fds, self._ground)
            return
        assert self._entry is not None
        self._calls = Calls(self._program.abi, self._entry, fds, self._ground)

    def run(self, calls: int, left_out: int = -1) -> int:
        """Make the calls of a batch; returns the time in ns."""
        if self._calls is None and not calls:
            return 0
        assert self._calls is not None
        return self._calls.run(calls, left_out)

    def hold(self, fd: int) -> bool:
        """Prepare the gate in the page behind ``fd``; returns whether launches can wait for it."""
        return self._ground.hold(fd)

    def queue(self, calls: int, ticket: int) -> int:
        """Launch the calls of a batch behind the gate; returns the host time in ns."""
        assert self._calls is not None
        return self._calls.queue(calls, ticket)

    def opened(self, ticket: int) -> int:
        """Wait until the queued calls are done, and report it; returns the device time in ns."""
        return self._ground.opened(ticket)

    def replay(self, calls: int) -> int | None:
        """Like ``run``, but as one recorded graph; None if the launches cannot be recorded."""
        assert self._calls is not None
        return self._calls.replay(calls)

    def collect(self) -> None:
        """Copy the results of the last batch's calls into the outputs of their slots."""
        assert self._calls is not None
        self._calls.collect()
