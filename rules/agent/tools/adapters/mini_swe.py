"""mini-swe-agent, run with ``--output {home}/trajectory.json``.

The trajectory has all messages, with the model's answers as LiteLLM gives them, and at its end
how the run went. Standard output counts steps and dollars.

https://mini-swe-agent.com/latest/usage/mini/ (flags)
https://mini-swe-agent.com/latest/usage/output_files/ (trajectory)
https://mini-swe-agent.com/latest/advanced/global_configuration/ (variables)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from adapter import Captured, Report, State, Usage, json_object, last_line, read_text

TRAJECTORY = "trajectory.json"
_STEP = re.compile(rb"\(step (\d+), \$(\d+\.\d+)\)")
_ENDED = {"Submitted": State.FINISHED, "LimitsExceeded": State.BUDGET}
_UNAVAILABLE = {
    *("AuthenticationError", "PermissionDeniedError", "NotFoundError", "RateLimitError"),
    *("APIConnectionError", "APIError", "InternalServerError", "ServiceUnavailableError"),
    *("BadGatewayError", "Timeout"),
}
"""LiteLLM's names for having no model, which is nobody's result."""


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
    """The trajectory; without one, the run came to nothing."""
    trajectory = json_object(read_text(captured.home / TRAJECTORY))
    messages = trajectory.get("messages", [])
    info = trajectory.get("info", {})
    status = str(info.get("exit_status", ""))
    transcript = tuple(_entry(message) for message in messages if message["role"] != "exit")
    state = _ENDED.get(status, State.FAILED)
    if status in _UNAVAILABLE:
        state = State.UNAVAILABLE
    if state is State.FINISHED:
        return Report(captured.state, _usage(info, messages), transcript)
    said = str(messages[-1].get("content", "")) if messages else ""
    message = " ".join(said.split()) or last_line(captured.stderr) or "it left no trajectory"
    return Report(state, _usage(info, messages), transcript, f"{status}: {message}".lstrip(": "))


def _usage(info: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Usage:
    """Tokens are those of all answers; a cost of nothing is one that is not known."""
    answers = [message.get("extra", {}).get("response") for message in messages]
    each = [answer["usage"] for answer in answers if answer and answer.get("usage")]
    cached = [(usage.get("prompt_tokens_details") or {}).get("cached_tokens") for usage in each]
    stats = info.get("model_stats", {})
    return Usage(
        turns=stats.get("api_calls"),
        input_tokens=sum(usage["prompt_tokens"] for usage in each) if each else None,
        output_tokens=sum(usage["completion_tokens"] for usage in each) if each else None,
        cached_tokens=sum(count or 0 for count in cached) if each else None,
        dollars=stats.get("instance_cost") or None,
    )


def _entry(message: Mapping[str, Any]) -> Mapping[str, Any]:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    entry = {"role": message["role"], "text": message.get("content") or ""}
    if not calls:
        return entry
    return {**entry, "tool": calls[0]["name"], "input": [call["arguments"] for call in calls]}
