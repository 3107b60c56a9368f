"""``out/build.log``: what a build did, one JSON object a line, for whoever looks into it later."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, TextIO

from kabuild.model.event import ActionExecuting, ActionSettled, BuildFinished, Event, Warned
from kabuild.model.result import Settled


class EventLog:
    """An event sink that writes the log of the last build in which anything ran.

    The file is opened, and structlog imported, with the first action that really executes:
    a build that is answered from the cache pays nothing and leaves the log alone. Where the
    file cannot be written there is no log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._log: Any = None

    def emit(self, event: Event) -> None:
        """Write the line of one event, if it has one."""
        if isinstance(event, ActionExecuting):
            self._open()
            self._write("action_executing", label=str(event.label))
        elif isinstance(event, ActionSettled):
            self._write("action_settled", mnemonic=event.mnemonic, **_fields(event.settled))
        elif isinstance(event, Warned):
            self._write("warning", message=event.message)
        elif isinstance(event, BuildFinished):
            self._write("build_finished", interrupted=event.interrupted)
            self._close()

    def _open(self) -> None:
        if self._file is not None:
            return
        import structlog

        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("w", encoding="utf-8")
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
            self._file.close()
        self._file = self._log = None


def _fields(settled: Settled) -> dict[str, Any]:
    verdict = settled.verdict
    return {
        "label": str(settled.label),
        "outcome": settled.outcome.value,
        "cached": settled.cached,
        "seconds": round(settled.seconds, 3),
        "key": settled.key.hash if settled.key else None,
        "verdict": verdict.verdict.value if verdict else None,
        "reason": verdict.reason if verdict else "",
        "message": settled.message,
    }
