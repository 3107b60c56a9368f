"""Progress on stderr: plain lines in a pipe, a live display on a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from kabuild.base import threads
from kabuild.base.clock import Clock
from kabuild.model.event import (
    ActionExecuting,
    ActionSettled,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Event,
    EventSink,
    Warned,
)
from kabuild.model.result import Outcome, Settled

if TYPE_CHECKING:
    from rich.live import Live

SHOWN = 6
PATIENCE = 60.0
"""Seconds after which a line names what still runs."""


def settled_line(settled: Settled) -> str:
    """``//tasks/hip2hip/softmax:softmax.perf PASS 3.2 s``, with the reason if there is one."""
    verdict = settled.verdict
    word = verdict.verdict.value if verdict else settled.outcome.value
    reason = f" {verdict.reason}" if verdict and verdict.reason else ""
    source = " (cached)" if settled.cached else f" {settled.seconds:.2f} s"
    return f"{settled.label} {word}{reason}{source}"


class PlainProgress:
    """One line for each action that ran; cached and skipped ones are only counted.

    Every ``patience`` seconds it names what is still running. If several builds follow one another,
    as in a report of several agents, each counts anew.
    """

    def __init__(self, stream: TextIO, *, patience: float = PATIENCE) -> None:
        self._stream = stream
        self._patience = patience
        self._total = 0
        self._done = 0
        self._running: dict[str, float] = {}
        self._ended: threading.Event | None = None

    def emit(self, event: Event) -> None:
        """Print the line of one event, if it has one."""
        if isinstance(event, BuildStarted):
            self._done, self._total = 0, event.total
        elif isinstance(event, Warned):
            self._write(f"warning: {event.message}")
        elif isinstance(event, ActionExecuting):
            self._running[str(event.label)] = time.monotonic()
            self._watch()
        elif isinstance(event, BuildFinished) and self._ended:
            self._ended.set()
            self._ended = None
        elif isinstance(event, ActionSettled):
            self._done += 1
            self._running.pop(str(event.settled.label), None)
            if not event.settled.cached and event.settled.outcome is not Outcome.SKIPPED:
                line = settled_line(event.settled)
                self._write(f"[{self._done}/{self._total}] {event.mnemonic} {line}")

    def _watch(self) -> None:
        """Start naming long-running actions, unless started already."""
        if self._ended is None:
            self._ended = threading.Event()
            name = "kabuild-progress"
            arguments = (self._ended,)
            threads.start(
                threading.Thread(target=self._name_slow, args=arguments, name=name, daemon=True)
            )

    def _name_slow(self, ended: threading.Event) -> None:
        while not ended.wait(self._patience):
            now = time.monotonic()
            slow = {label: now - since for label, since in [*self._running.items()]}
            for label, seconds in slow.items():
                if seconds >= self._patience:
                    self._write(f"[{self._done}/{self._total}] {label} runs for {seconds:.0f} s")

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


class LiveProgress:
    """A few lines that change in place: the progress, and what runs for how long.

    The display starts when the first action executes: a fully cached build has none and pays for
    none.
    """

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._lock = threading.Lock()
        self._total = 0
        self._done = 0
        self._running: dict[str, tuple[str, float]] = {}
        self._names: dict[str, str] = {}
        self._live: Live | None = None

    def emit(self, event: Event) -> None:
        """Update the display."""
        with self._lock:
            if isinstance(event, BuildStarted):
                self._done, self._total = 0, event.total
            elif isinstance(event, ActionStarted):
                self._names[str(event.label)] = event.mnemonic
            elif isinstance(event, ActionExecuting):
                mnemonic = self._names.get(str(event.label), "")
                self._running[str(event.label)] = (mnemonic, event.at)
                self._start()
            elif isinstance(event, ActionSettled):
                self._done += 1
                self._running.pop(str(event.settled.label), None)
            elif isinstance(event, Warned):
                self._print(f"warning: {event.message}")
            elif isinstance(event, BuildFinished):
                self._stop()

    def __rich__(self) -> str:
        """The current display; rich asks for it several times a second."""
        now = self._clock.wall()
        lines = [f"[{self._done}/{self._total}] {len(self._running)} running".replace("[", "\\[")]
        for label, (mnemonic, since) in list(self._running.items())[:SHOWN]:
            lines.append(f"    {mnemonic} {label} {now - since:.1f} s")
        if len(self._running) > SHOWN:
            lines.append(f"    and {len(self._running) - SHOWN} more")
        return "\n".join(lines)

    def _start(self) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._stream, highlight=False)
            self._live = Live(self, console=console, refresh_per_second=8, transient=True)
            self._live.start()

    def _print(self, line: str) -> None:
        if self._live:
            self._live.console.print(line, markup=False)
        else:
            self._stream.write(f"{line}\n")

    def _stop(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None


class Fan:
    """Passes each event to several sinks, one at a time."""

    def __init__(self, *sinks: EventSink) -> None:
        self._sinks = sinks
        self._lock = threading.Lock()

    def emit(self, event: Event) -> None:
        """Pass an event on; calls from several threads are serialised.

        All sinks get the event even if one raises, so that a display can be taken down.
        """
        problems: list[Exception] = []
        with self._lock:
            for sink in self._sinks:
                try:
                    sink.emit(event)
                except Exception as problem:  # noqa: BLE001 - raised again below
                    problems.append(problem)
        if problems:
            raise problems[0]


def make_progress(clock: Clock, *, stream: TextIO | None = None) -> EventSink:
    """The display for ``stream`` (stderr): plain lines unless the cursor can be moved."""
    target = stream or sys.stderr
    return LiveProgress(target, clock) if can_redraw(target) else PlainProgress(target)


def can_redraw(stream: TextIO) -> bool:
    """Whether written lines can be changed: on a terminal that is not dumb."""
    is_terminal: Callable[[], bool] = stream.isatty
    return is_terminal() and os.environ.get("TERM", "dumb") != "dumb"
