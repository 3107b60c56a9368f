"""Cursor Agent, run with ``--print --output-format stream-json``.

Each line of its output is an event: ``assistant`` is something said, ``tool_call`` something done,
``result`` the end. It does not report money, and reports tokens only in newer versions. If it
fails, it prints no result, and the error on standard error.

https://cursor.com/docs/cli/headless (``--print``, ``CURSOR_API_KEY``)
https://cursor.com/docs/cli/reference/parameters (flags)
https://cursor.com/docs/cli/reference/output-format (events)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from adapter import (
    Captured,
    Report,
    Sieve,
    State,
    TurnCounter,
    Usage,
    entry,
    json_objects,
    last_line,
)

_UNAVAILABLE = re.compile(
    r"api key|not logged in|authenticat|unauthori[sz]ed|usage limit|rate limit|quota"
    r"|network|connect|unavailable",
    re.IGNORECASE,
)
"""Its messages if no model is available, which means no result."""


def meter() -> TurnCounter:
    """Counts tool calls."""
    return TurnCounter(_is_call)


def _is_call(event: Mapping[str, Any]) -> bool:
    return (event.get("type"), event.get("subtype")) == ("tool_call", "completed")


def read(captured: Captured) -> Report:
    """Read all events; without a result, standard error decides."""
    events = list(json_objects(captured.stdout))
    sieve = Sieve()
    transcript = tuple(sieve.each(events, _entries))
    calls = sum(made["role"] == "tool" for made in transcript)
    ends = [event for event in events if event.get("type") == "result"]
    result: Mapping[str, Any] = ends[-1] if ends else {}
    usage = sieve.one(result, lambda e: _usage(e.get("usage") or {}, 1 + calls), Usage(1 + calls))
    if result and not result.get("is_error"):
        return Report(captured.state, usage, transcript, skipped=sieve.skipped)
    message = str(result.get("result") or "") or last_line(captured.stderr)
    state = captured.state
    if state in {State.FINISHED, State.FAILED}:
        state = State.UNAVAILABLE if _UNAVAILABLE.search(message) else State.FAILED
    told = message or "it printed no result"
    return Report(state, usage, transcript, told, skipped=sieve.skipped)


def _usage(told: Mapping[str, Any], turns: int) -> Usage:
    sent, cached = told.get("inputTokens"), told.get("cacheReadTokens")
    total = None if sent is None else sent + (cached or 0) + (told.get("cacheWriteTokens") or 0)
    return Usage(turns, total, told.get("outputTokens"), cached)


def _entries(event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    kind = event.get("type")
    if kind in {"assistant", "user"}:
        for block in event["message"]["content"]:
            yield entry(kind, block.get("text", ""))
    elif kind == "tool_call" and event.get("subtype") == "completed":
        for name, call in event["tool_call"].items():
            text = str(call.get("result", "")) if isinstance(call, dict) else ""
            given = call.get("args") if isinstance(call, dict) else call
            yield entry("tool", text, tool=name, input=given)
