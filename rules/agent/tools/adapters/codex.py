"""Codex CLI, run with ``exec --json``.

Each line of its output is an event: ``item.completed`` is something said or done,
``turn.completed`` has the tokens, ``turn.failed`` what went wrong. It tells of no money. Where
the provider cannot be reached it waits for ever, and an ``error`` is the last that it says.

https://developers.openai.com/codex/noninteractive (``exec``, events, ``CODEX_API_KEY``)
https://developers.openai.com/codex/cli/reference (flags)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapter import Captured, Report, State, TurnCounter, Usage, json_objects, last_line

_ACTIONS = {"command_execution", "file_change", "mcp_tool_call", "web_search"}
_UNAVAILABLE = re.compile(
    r"\b(401|403|404|407|408|429|5\d\d)\b|usage limit|quota|not logged in|billing|credit"
    r"|stream disconnected|error sending request|connection|waiting for network",
    re.IGNORECASE,
)
"""How it says that there was no model to be had, which is nobody's result."""


def meter() -> TurnCounter:
    """Counts actions; tokens are told at the end only."""
    return TurnCounter(_is_action)


def _is_action(event: Mapping[str, Any]) -> bool:
    return event.get("type") == "item.completed" and event["item"]["type"] in _ACTIONS


def read(captured: Captured) -> Report:
    """All events; a turn that failed decides."""
    events = list(json_objects(captured.stdout))
    items = [event["item"] for event in events if event.get("type") == "item.completed"]
    totals = [event["usage"] for event in events if event.get("type") == "turn.completed"]
    failure = next((e for e in reversed(events) if e.get("type") == "turn.failed"), None)
    state, message = captured.state, ""
    if failure is not None:
        message = str(failure["error"]["message"])
        state = State.UNAVAILABLE if _UNAVAILABLE.search(message) else State.FAILED
    elif captured.state is State.TIMED_OUT and events and events[-1].get("type") == "error":
        message = str(events[-1].get("message"))
        state = State.UNAVAILABLE if _UNAVAILABLE.search(message) else state
    elif not totals:
        message = last_line(captured.stderr) or "it completed no turn"
        state = State.FAILED if state is State.FINISHED else state
    usage = Usage(
        turns=1 + sum(item["type"] in _ACTIONS for item in items),
        input_tokens=sum(total["input_tokens"] for total in totals) if totals else None,
        output_tokens=sum(total["output_tokens"] for total in totals) if totals else None,
        cached_tokens=sum(t.get("cached_input_tokens", 0) for t in totals) if totals else None,
    )
    return Report(state, usage, tuple(map(_entry, items)), message)


def _entry(item: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = item["type"]
    if kind in {"agent_message", "reasoning"}:
        thinking = {"thinking": True} if kind == "reasoning" else {}
        return {"role": "assistant", "text": item["text"], **thinking}
    if kind == "error":
        return {"role": "system", "text": item["message"]}
    if kind == "command_execution":
        text = item.get("aggregated_output") or ""
        return {"role": "tool", "text": text, "tool": "shell", "input": item["command"]}
    known = {name: value for name, value in item.items() if name not in {"id", "type"}}
    return {"role": "tool", "text": "", "tool": kind, "input": known}
