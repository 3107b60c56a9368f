"""Progress on stderr: plain lines in a pipe, a live display on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

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


def settled_line(settled: Settled) -> str:
    """``//tasks/hip2hip/softmax:softmax.perf PASS 3.2 s`` with the reason where there is one."""
    verdict = settled.verdict
    word = verdict.verdict.value if verdict else settled.outcome.value
    reason = f" {verdict.reason}" if verdict and verdict.reason else ""
    source = " (cached)" if settled.cached else f" {settled.seconds:.2f} s"
    return f"{settled.label} {word}{reason}{source}"


class PlainProgress:
    """One line for each action that ran; cached and skipped ones are only counted.

    Several builds may follow one another, as those of a report's agents do: each counts anew.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._total = 0
        self._done = 0

    def emit(self, event: Event) -> None:
        """Print the line of one event, if it has one."""
        if isinstance(event, BuildStarted):
            self._done, self._total = 0, event.total
        elif isinstance(event, Warned):
            self._write(f"warning: {event.message}")
        elif isinstance(event, ActionSettled):
            self._done += 1
            if not event.settled.cached and event.settled.outcome is not Outcome.SKIPPED:
                line = settled_line(event.settled)
                self._write(f"[{self._done}/{self._total}] {event.mnemonic} {line}")

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


class LiveProgress:
    """A few lines that change in place: how far the build is and what runs for how long.

    The display starts with the first action that really executes: a build that is
    answered from the cache shows none and pays for none.
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
        """Change what is shown."""
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
        """What the display shows now; rich asks for it several times a second."""
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
        """Pass on one event. Calls from several threads are put in a row."""
        with self._lock:
            for sink in self._sinks:
                sink.emit(event)


def make_progress(clock: Clock, *, stream: TextIO | None = None) -> EventSink:
    """The display that fits ``stream`` (stderr)."""
    target = stream or sys.stderr
    is_terminal: Callable[[], bool] = target.isatty
    return LiveProgress(target, clock) if is_terminal() else PlainProgress(target)
