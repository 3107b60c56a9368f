"""Codex CLI, run with ``exec --json``.

Each line of its output is an event: ``item.completed`` is something said or done,
``turn.completed`` has the tokens, ``turn.failed`` the error. It does not report money. If the
provider cannot be reached it waits for ever, after an ``error``.

https://developers.openai.com/codex/noninteractive (``exec``, events, ``CODEX_API_KEY``)
https://developers.openai.com/codex/cli/reference (flags)
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

_ACTIONS = {"command_execution", "file_change", "mcp_tool_call", "web_search"}
_UNAVAILABLE = re.compile(
    r"\b(401|403|404|407|408|429|5\d\d)\b|usage limit|quota|not logged in|billing|credit"
    r"|stream disconnected|error sending request|connection|waiting for network",
    re.IGNORECASE,
)
"""Its messages if no model is available, which means no result."""


def meter() -> TurnCounter:
    """Counts actions; tokens are reported only at the end."""
    return TurnCounter(_is_action)


def _is_action(event: Mapping[str, Any]) -> bool:
    return event.get("type") == "item.completed" and event["item"]["type"] in _ACTIONS


def read(captured: Captured) -> Report:
    """Read all events; a failed turn decides."""
    events = list(json_objects(captured.stdout))
    sieve = Sieve()
    done = sieve.each((e for e in events if e.get("type") == "item.completed"), _done)
    completed = [event for event in events if event.get("type") == "turn.completed"]
    failure = next((e for e in reversed(events) if e.get("type") == "turn.failed"), None)
    state, message = captured.state, ""
    if failure is not None:
        message = sieve.one(failure, lambda e: str(e["error"]["message"]), "its turn failed")
        state = State.UNAVAILABLE if _UNAVAILABLE.search(message) else State.FAILED
    elif captured.state is State.TIMED_OUT and events and events[-1].get("type") == "error":
        message = str(events[-1].get("message"))
        state = State.UNAVAILABLE if _UNAVAILABLE.search(message) else state
    elif not completed:
        message = last_line(captured.stderr) or "it completed no turn"
        state = State.FAILED if state is State.FINISHED else state
    totals = sieve.each(completed, _tokens)
    sent, received, cached = map(sum, zip(*totals, strict=True)) if totals else (None,) * 3
    usage = Usage(1 + sum(kind in _ACTIONS for kind, _ in done), sent, received, cached)
    transcript = tuple(made for _, made in done)
    return Report(state, usage, transcript, message, skipped=sieve.skipped)


def _tokens(event: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """Tokens of one turn: sent, received, cached."""
    usage = event["usage"]
    known = int(usage.get("cached_input_tokens", 0))
    yield int(usage["input_tokens"]), int(usage["output_tokens"]), known


def _done(event: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The kind of an item, and its entry."""
    item = event["item"]
    kind = item["type"]
    if kind in {"agent_message", "reasoning"}:
        thinking = {"thinking": True} if kind == "reasoning" else {}
        yield kind, entry("assistant", item["text"], **thinking)
    elif kind == "error":
        yield kind, entry("system", item["message"])
    elif kind == "command_execution":
        text = item.get("aggregated_output") or ""
        yield kind, entry("tool", text, tool="shell", input=item["command"])
    else:
        known = {name: value for name, value in item.items() if name not in {"id", "type"}}
        yield kind, entry("tool", "", tool=kind, input=known)
