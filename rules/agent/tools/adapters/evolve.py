"""Our own search agent, ``evolve``: each line of its output is an entry, usage, or its end."""

from __future__ import annotations

from typing import Any

from adapter import Captured, Report, State, Usage, json_objects, last_line

from adapters.plain import UsageLines, read_usage

_STATES = {
    "finished": State.FINISHED,
    "budget": State.BUDGET,
    "failed": State.FAILED,
    "unavailable": State.UNAVAILABLE,
}


def meter() -> UsageLines:
    """Follows the usage lines of one run."""
    return UsageLines()


def read(captured: Captured) -> Report:
    """Read all lines; the one about its end decides, unless kabuild ended the run."""
    usage = Usage()
    ended: dict[str, Any] = {}
    transcript = []
    for value in json_objects(captured.stdout):
        if "role" in value:
            transcript.append(value)
        elif isinstance(value.get("end"), dict):
            ended = value["end"]
        else:
            usage = read_usage(value) or usage
    state, message = captured.state, ""
    if state in {State.FINISHED, State.FAILED}:
        state = _STATES.get(str(ended.get("state")), State.FAILED)
        message = str(ended.get("message", last_line(captured.stderr)))
    figures = ended.get("figures")
    told = figures if isinstance(figures, dict) else {}
    return Report(state, usage, tuple(transcript), message, told)
