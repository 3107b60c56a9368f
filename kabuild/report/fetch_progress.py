"""Progress of fetching toolchains, on stderr: bars on a terminal, a line each otherwise."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, TextIO

from kabuild.report.progress import can_redraw
from kabuild.toolchain.fetch.progress import FetchProgress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def make_fetch_progress(stream: TextIO | None = None) -> FetchProgress:
    """The progress display for ``stream``, by default stderr."""
    stream = stream or sys.stderr
    return LiveFetch(stream) if can_redraw(stream) else PlainFetch(stream)


def megabytes(size: int) -> str:
    """``37.4 MB``; small sizes in kB."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"


class PlainFetch:
    """One line when something begins and one when a toolchain is ready."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def started(self, name: str, size: int, done: int) -> None:
        """``done`` bytes are there from an earlier attempt."""
        rest = f", {megabytes(done)} already here" if done else ""
        self._write(f"fetching {name} ({megabytes(size)}{rest})")

    def advanced(self, name: str, size: int) -> None:
        """Not worth a line."""

    def unpacking(self, toolchain: str) -> None:
        """All files are there and are what was pinned."""
        self._write(f"unpacking {toolchain}")

    def finished(self, toolchain: str, seconds: float) -> None:
        """The toolchain can be used."""
        self._write(f"fetched {toolchain} in {seconds:.1f} s")

    def stop(self) -> None:
        """Does nothing: there is no display to remove."""

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


class LiveFetch:
    """A bar for each file, gone when all is done; then one line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def started(self, name: str, size: int, done: int) -> None:
        """A bar appears, as far as an earlier attempt got."""
        with self._lock:
            if self._progress is None:
                self._progress = _bars(self._stream)
                self._progress.start()
            self._tasks[name] = self._progress.add_task(name, total=size, completed=done)

    def advanced(self, name: str, size: int) -> None:
        """The bar moves; back, where a server cannot resume."""
        if self._progress:
            self._progress.advance(self._tasks[name], size)

    def unpacking(self, toolchain: str) -> None:
        """The bars stay full while it is unpacked."""
        if self._progress:
            self._progress.add_task(f"unpacking {toolchain}", total=None)

    def finished(self, toolchain: str, seconds: float) -> None:
        """One line stays."""
        self.stop()
        self._stream.write(f"fetched {toolchain} in {seconds:.1f} s\n")
        self._stream.flush()

    def stop(self) -> None:
        """The bars go."""
        with self._lock:
            if self._progress:
                self._progress.stop()
            self._progress = None
            self._tasks.clear()


def _bars(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(file=stream, highlight=False),
        transient=True,
    )
