"""Claude Code, run with ``--print --output-format stream-json --verbose``.

Each line of its output is an event: ``assistant`` and ``user`` carry a message of Anthropic's
protocol, ``result`` is the last one and has turns, tokens and dollars.

https://code.claude.com/docs/en/cli-reference (flags)
https://code.claude.com/docs/en/headless (``--print``, events)
https://code.claude.com/docs/en/settings (variables)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapter import (
    Captured,
    Report,
    Sieve,
    State,
    Usage,
    entry,
    json_object,
    json_objects,
    last_line,
    text_of,
)

_OWN_FAULTS = {"invalid_request", "max_output_tokens"}
"""Errors of the API that the agent causes; any other means no result."""


class MessageMeter:
    """Sums the usage of messages, whose parts may come in several events."""

    def __init__(self) -> None:
        self._messages: dict[str, Usage] = {}

    def feed(self, line: bytes) -> Usage | None:
        """The usage so far, after one more event."""
        event = json_object(line)
        if event.get("type") != "assistant":
            return None
        message = event["message"]
        self._messages[message["id"]] = _usage(message["usage"])
        each = self._messages.values()
        return Usage(
            turns=len(each),
            input_tokens=sum(usage.input_tokens or 0 for usage in each),
            output_tokens=sum(usage.output_tokens or 0 for usage in each),
            cached_tokens=sum(usage.cached_tokens or 0 for usage in each),
        )


def meter() -> MessageMeter:
    """Follows the messages of one run."""
    return MessageMeter()


def read(captured: Captured) -> Report:
    """Read all events; the last one decides."""
    events = list(json_objects(captured.stdout))
    sieve = Sieve()
    transcript = tuple(sieve.each(events, _entries))
    result = next((e for e in reversed(events) if e.get("type") == "result"), None)
    if result is None:
        told = last_line(captured.stderr) or "it printed no result"
        cut_short = State.FAILED if captured.state is State.FINISHED else captured.state
        return Report(cut_short, Usage(), transcript, told, skipped=sieve.skipped)
    state = captured.state
    usage = sieve.one(result, _total, Usage())
    message = str(result.get("result") or result.get("subtype"))
    if result.get("terminal_reason") == "api_error" or result.get("api_error_status"):
        error = next((e["error"] for e in reversed(events) if "error" in e), "")
        state = State.FAILED if str(error) in _OWN_FAULTS else State.UNAVAILABLE
    elif str(result.get("subtype", "")).startswith("error_max_"):
        state = State.BUDGET
    elif result.get("is_error"):
        state = State.FAILED
    else:
        message = ""
    return Report(state, usage, transcript, message, skipped=sieve.skipped)


def _total(result: Mapping[str, Any]) -> Usage:
    return _usage(result["usage"], result.get("num_turns"), result.get("total_cost_usd"))


def _usage(
    usage: Mapping[str, Any], turns: int | None = None, dollars: float | None = None
) -> Usage:
    cached = int(usage.get("cache_read_input_tokens") or 0)
    written = int(usage.get("cache_creation_input_tokens") or 0)
    return Usage(
        turns=turns,
        input_tokens=int(usage.get("input_tokens") or 0) + cached + written,
        output_tokens=int(usage.get("output_tokens") or 0),
        cached_tokens=cached,
        dollars=dollars,
    )


def _entries(event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The entries of an event: what was said or done."""
    role = event.get("type")
    if role not in {"assistant", "user"}:
        return
    content = event["message"]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] == "text":
            yield entry(role, block["text"])
        elif block["type"] == "thinking":
            yield entry(role, block["thinking"], thinking=True)
        elif block["type"] == "tool_use":
            yield entry(role, "", tool=block["name"], input=block["input"])
        elif block["type"] == "tool_result":
            yield entry("tool", text_of(block.get("content")))
