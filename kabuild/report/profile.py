"""``out/profile.json``: the timeline of a build as a Chrome trace (chrome://tracing, Perfetto)."""

from __future__ import annotations

import json

from kabuild.model.event import ActionSettled, ActionStarted, BuildStarted, Event


class Profile:
    """An event sink that remembers spans; one row per worker slot."""

    def __init__(self) -> None:
        self._began = 0.0
        self._started: dict[str, ActionStarted] = {}
        self._spans: list[dict[str, object]] = []

    def emit(self, event: Event) -> None:
        """Note the start and the end of each action."""
        if isinstance(event, BuildStarted):
            self._began = event.at
        elif isinstance(event, ActionStarted):
            self._started[str(event.label)] = event
        elif isinstance(event, ActionSettled):
            start = self._started.pop(str(event.settled.label), None)
            if start:
                self._spans.append(self._span(start, event))

    def render(self) -> bytes:
        """The trace as JSON."""
        return json.dumps({"traceEvents": self._spans, "displayTimeUnit": "ms"}).encode()

    def _span(self, start: ActionStarted, end: ActionSettled) -> dict[str, object]:
        settled = end.settled
        return {
            "name": str(settled.label),
            "cat": end.mnemonic,
            "ph": "X",
            "ts": round((start.at - self._began) * 1e6),
            "dur": round((end.at - start.at) * 1e6),
            "pid": 1,
            "tid": start.slot,
            "args": {"cached": settled.cached, "outcome": settled.outcome.value},
        }
