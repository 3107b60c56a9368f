"""mini-swe-agent, run with ``--output {home}/trajectory.json``.

The trajectory has all messages, with the model's answers in LiteLLM's form, and the outcome at its
end. Standard output counts steps and dollars.

https://mini-swe-agent.com/latest/usage/mini/ (flags)
https://mini-swe-agent.com/latest/usage/output_files/ (trajectory)
https://mini-swe-agent.com/latest/advanced/global_configuration/ (variables)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter import (
    Captured,
    Report,
    Sieve,
    State,
    Usage,
    entry,
    json_object,
    last_line,
    read_text,
    text_of,
)

TRAJECTORY = "trajectory.json"
_STEP = re.compile(rb"\(step (\d+), \$(\d+\.\d+)\)")
_ENDED = {"Submitted": State.FINISHED, "LimitsExceeded": State.BUDGET}
_UNAVAILABLE = {
    *("AuthenticationError", "PermissionDeniedError", "NotFoundError", "RateLimitError"),
    *("APIConnectionError", "APIError", "InternalServerError", "ServiceUnavailableError"),
    *("BadGatewayError", "Timeout"),
}
"""LiteLLM's errors if no model is available, which means no result."""


class StepMeter:
    """Reads the headings of steps: ``mini-swe-agent (step 2, $0.01):``."""

    def feed(self, line: bytes) -> Usage | None:
        """Steps and dollars so far."""
        match = _STEP.search(line)
        return Usage(turns=int(match[1]), dollars=float(match[2])) if match else None


def meter() -> StepMeter:
    """Follows the steps of one run."""
    return StepMeter()


def read(captured: Captured) -> Report:
    """Read the trajectory; without one, the run has failed."""
    trajectory = json_object(read_text(captured.home / TRAJECTORY))
    listed, told = trajectory.get("messages"), trajectory.get("info")
    messages = listed if isinstance(listed, list) else []
    info = told if isinstance(told, dict) else {}
    sieve = Sieve()
    transcript = tuple(sieve.each(messages, _entries))
    usage = _usage(info, messages, sieve)
    status = str(info.get("exit_status", ""))
    state = _ENDED.get(status, State.FAILED)
    if status in _UNAVAILABLE:
        state = State.UNAVAILABLE
    if state is State.FINISHED:
        return Report(captured.state, usage, transcript, skipped=sieve.skipped)
    said = sieve.one(messages[-1], lambda m: str(m.get("content", "")), "") if messages else ""
    why = " ".join(said.split()) or last_line(captured.stderr) or "it left no trajectory"
    message = f"{status}: {why}".lstrip(": ")
    return Report(state, usage, transcript, message, skipped=sieve.skipped)


def _usage(info: Mapping[str, Any], messages: Sequence[Any], sieve: Sieve) -> Usage:
    """The usage of a run: tokens of all answers; a cost of 0 means unknown."""
    totals = sieve.each(messages, _tokens)
    sent, received, cached = map(sum, zip(*totals, strict=True)) if totals else (None,) * 3
    turns, dollars = sieve.one(info, _stats, (None, None))
    return Usage(turns, sent, received, cached, dollars)


def _stats(info: Mapping[str, Any]) -> tuple[Any, Any]:
    """Calls and dollars."""
    stats = info.get("model_stats", {})
    return stats.get("api_calls"), stats.get("instance_cost") or None


def _tokens(message: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """Tokens of an answer: sent, received, cached; zeros for other messages."""
    answer = message.get("extra", {}).get("response")
    if answer and (usage := answer.get("usage")):
        known = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        yield int(usage["prompt_tokens"]), int(usage["completion_tokens"]), int(known)


def _entries(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if message["role"] == "exit":
        return
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    names, given = [call["name"] for call in calls], [call["arguments"] for call in calls]
    more = {"tool": names[0], "input": given} if calls else {}
    yield entry(message["role"], text_of(message.get("content")), **more)
