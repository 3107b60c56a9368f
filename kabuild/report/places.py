"""Messages of actions in terms of the user's files, so that editors can jump there.

An action sees a kernel as ``softmax.hip`` whatever its file is called, so that equal files have
equal keys. Its message ``softmax.hip:3:10: error`` is shown as ``bad.hip:3:10: error``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import StoreError
from kabuild.model.action import Artifact, Literal, Name, Output, Source
from kabuild.model.event import ActionSettled, Event, EventSink
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.result import Settled
from kabuild.report.views import view_of
from kabuild.store import Store


class Places:
    """Rewrites messages of actions; pure except for the line maps that it reads from the store.

    Args:
        roots: where the named roots of sources lie.
        cwd: the user's working directory; files below it are named relative to it.
        typed: by absolute path, the path as typed on the command line.
        store: has the line maps. A file inside it is a text from a program that no user can open,
            so messages about it stay as they are.
    """

    def __init__(
        self,
        graph: ActionGraph,
        roots: dict[str, Path],
        cwd: Path,
        typed: dict[str, str],
        store: Store,
    ) -> None:
        self._graph = graph
        self._roots = roots
        self._cwd = os.path.realpath(cwd)
        self._typed = typed
        self._store = store
        self._settled: dict[str, Settled] = {}

    def of(self, settled: Settled) -> Settled:
        """``settled`` with its message and verdict in terms of the user's files.

        Call it for an action after its dependencies.
        """
        label = str(settled.label)
        self._settled[label] = settled
        action = self._graph.actions.get(label)
        verdict = settled.verdict
        texts = [settled.message, *((verdict.summary, verdict.detail) if verdict else ())]
        names = action.names if action else ()
        if not any(f"{name.name}:" in text for name in names for text in texts):
            return settled
        message, *said = (self._said(text, names) for text in texts)
        if verdict:
            verdict = replace(verdict, summary=said[0], detail=said[1])
        return replace(settled, verdict=verdict, message=message)

    def sink(self, sink: EventSink) -> EventSink:
        """A sink that passes events to ``sink`` in terms of the user's files."""
        return _Placing(self, sink)

    def _said(self, text: str, names: Iterable[Name]) -> str:
        for name in names:
            text = self._named(text, name)
        return text

    def _named(self, text: str, name: Name) -> str:
        shown = self._shown(name.file)
        if shown is None:
            return text
        lines = self._lines(name.lines) if name.lines else ()

        def place(match: re.Match[str]) -> str:
            number = int(match["line"]) if match["line"] else 0
            if 0 < number <= len(lines):
                number = lines[number - 1]
            return f"{shown}:{number}" if number else f"{shown}:"

        pattern = rf"(?<![\w./-]){re.escape(name.name)}:(?P<line>[0-9]{{1,9}}\b)?"
        return re.sub(pattern, place, text)

    def _shown(self, file: Artifact) -> str | None:
        """The user's name of a file: as typed, else relative to the working directory.

        None for other files.
        """
        if isinstance(file, Literal):
            return None
        if isinstance(file, Output):
            out = self._roots["workspace"] / "out"
            path = str(view_of(out, Label.parse(file.producer)) / file.path)
        else:
            path = self._path(file)
        if path.startswith(f"{os.path.realpath(self._store.root)}/"):
            return None
        for given, typed in self._typed.items():
            if path == given or (given.endswith("/") and path.startswith(given)):
                return os.path.join(typed, path.removeprefix(given)) if path != given else typed  # noqa: PTH118
        real = os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path)  # noqa: PTH119, PTH120
        return real.removeprefix(f"{self._cwd}/")

    def _path(self, file: Source) -> str:
        return file.path if file.root == "user" else str(self._roots[file.root] / file.path)

    def _lines(self, output: Output) -> Sequence[int]:
        """The line of the file for each line that the action saw; empty if unknown."""
        producer = self._settled.get(output.producer)
        file = producer.result.file(output.path) if producer and producer.result else None
        if file is None:
            return ()
        try:
            found = read_json(self._store.cas.get(file.digest))
        except (ValueError, StoreError):
            return ()
        is_list = isinstance(found, list) and all(isinstance(line, int) for line in found)
        return found if is_list else ()


class _Placing:
    """An event sink before another one."""

    def __init__(self, places: Places, sink: EventSink) -> None:
        self._places = places
        self._sink = sink

    def emit(self, event: Event) -> None:
        """Pass an event on; the end of an action in terms of the user's files."""
        if isinstance(event, ActionSettled):
            event = replace(event, settled=self._places.of(event.settled))
        self._sink.emit(event)
