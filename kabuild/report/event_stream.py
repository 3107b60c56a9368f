"""``--events=FILE``: a build as it goes, one JSON object a line, for programs that follow it.

Every line has ``event`` and, but for the first, ``at``: seconds since the build began. The first
is ``stream`` with the ``schema``; the last is ``finished`` with totals and exit code, and without
it the build was cut off. Between them:

====================  ========================================================================
``started``           the graph is known: ``total`` actions will settle, on ``platform``
``action_started``    ``label``, ``mnemonic``, ``slot``
``action_executing``  ``label``: no cache knew it
``action_settled``    ``label``, ``mnemonic``, ``outcome``, ``cached``, ``seconds``, ``key``; of a
                      gate ``verdict``, ``reason`` and ``summary``, too
``warning``           ``message``
``task``              ``task``, ``trial``, ``gates`` by name, each with the fields that it has in
                      ``--json``, ``score``, ``speedup`` and its 95 % interval: ``speedup_low``,
                      ``speedup_high``
====================  ========================================================================

New events and fields may come with any version; ``schema`` changes when one changes its meaning.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kabuild.base.clock import Clock
from kabuild.base.errors import InfraError, Reason
from kabuild.base.fs import appending
from kabuild.base.version import __version__
from kabuild.model.event import (
    ActionExecuting,
    ActionSettled,
    ActionStarted,
    BuildStarted,
    Event,
    Warned,
)
from kabuild.model.task_result import TaskResult
from kabuild.report.scoreboard import Totals

SCHEMA = "kabuild/events/1"
_FIRST = b'{"event": "stream", '
_LONGEST_FIRST = 200


def is_stream(path: Path) -> bool:
    """Whether ``path`` holds an earlier stream, or nothing: it is not a file with other content.

    Devices and pipes hold nothing; their readers may wait for the first line.
    """
    try:
        if not path.is_file():
            return True
        with path.open("rb") as file:
            first = file.readline(_LONGEST_FIRST)
    except OSError:
        return False
    return not first or first.startswith(_FIRST)


class EventStream:
    """An event sink that writes each line at once, for readers that follow it.

    Events come from any thread; lines never mix.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        """Open ``path``, a file or a pipe. Raises ``OSError``; InfraError if a line is lost."""
        self._path = path
        self._file = appending(path, fresh=True)
        self._clock = clock
        self._began = clock.monotonic()
        self._lock = threading.Lock()
        self._write({"event": "stream", "schema": SCHEMA, "kabuild": __version__})

    def emit(self, event: Event) -> None:
        """Write the line of one event, if it has one."""
        if line := line_of(event):
            self._say(line[0], **line[1])

    def finish(self, table: Sequence[TaskResult], counts: Totals, exit_code: int) -> None:
        """Write the last line, and close."""
        for result in table:
            self._say("task", **result.to_json())
        self._say("finished", totals=asdict(counts), exit_code=exit_code)
        self._file.close()

    def _say(self, event: str, **fields: Any) -> None:
        at = round(self._clock.monotonic() - self._began, 6)
        self._write({"event": event, "at": at, **fields})

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, allow_nan=False)
        with self._lock:
            try:
                self._file.write(f"{text}\n".encode(errors="backslashreplace"))
                self._file.flush()
            except OSError as error:
                what = f"--events: {self._path}: {error.strerror}"
                raise InfraError(Reason.OUTPUT_UNWRITABLE, what) from None


def line_of(event: Event) -> tuple[str, dict[str, Any]] | None:
    """The name and the fields of an event, here and in ``out/build.log``."""
    match event:
        case BuildStarted():
            return "started", {"total": event.total, "platform": event.platform}
        case ActionStarted():
            fields = {"label": str(event.label), "mnemonic": event.mnemonic, "slot": event.slot}
            return "action_started", fields
        case ActionExecuting():
            return "action_executing", {"label": str(event.label)}
        case ActionSettled():
            return "action_settled", _settled(event)
        case Warned():
            return "warning", {"message": event.message}
        case _:
            return None


def _settled(event: ActionSettled) -> dict[str, Any]:
    settled = event.settled
    fields = {
        "label": str(settled.label),
        "mnemonic": event.mnemonic,
        "outcome": settled.outcome.value,
        "cached": settled.cached,
        "seconds": round(settled.seconds, 6),
        "key": settled.key.hash if settled.key else None,
        "message": settled.message,
    }
    verdict = settled.verdict
    if verdict is None:
        return fields
    said = {"verdict": verdict.verdict.value, "reason": verdict.reason, "summary": verdict.summary}
    return {**fields, **said}
