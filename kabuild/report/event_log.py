"""``out/build.log``: the lines of ``--events``, with the time of day, to read later."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any, TextIO

from kabuild.base.fs import appending
from kabuild.model.event import ActionExecuting, BuildFinished, Event
from kabuild.report.event_stream import line_of


class EventLog:
    """An event sink that writes the log of the last build that executed anything.

    The file is opened, and structlog imported, when the first action executes: a fully cached build
    costs nothing and leaves the log alone. If the file cannot be written there is no log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._log: Any = None

    def emit(self, event: Event) -> None:
        """Write the line of an event, if it has one."""
        if isinstance(event, ActionExecuting):
            self._open()
        if line := line_of(event):
            self._write(line[0], **line[1])
        elif isinstance(event, BuildFinished):
            self._write("finished", interrupted=event.interrupted)
            self._close()

    def _open(self) -> None:
        if self._file is not None:
            return
        import structlog

        with contextlib.suppress(OSError):
            self._file = io.TextIOWrapper(appending(self._path, fresh=True), encoding="utf-8")
            self._log = structlog.wrap_logger(
                structlog.WriteLogger(self._file),
                processors=[
                    structlog.processors.TimeStamper(fmt="iso", utc=True),
                    structlog.processors.JSONRenderer(sort_keys=True),
                ],
            )

    def _write(self, event: str, **fields: Any) -> None:
        if self._log is not None:
            with contextlib.suppress(OSError):
                self._log.info(event, **fields)

    def _close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = self._log = None
