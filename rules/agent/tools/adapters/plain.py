"""Any command: its output is the transcript, and its last JSON line may report usage.

To report usage, an agent ends its stdout with a line such as ``{"usage": {"turns": 3,
"input_tokens": 1200, "output_tokens": 300, "dollars": 0.02}}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from adapter import Captured, Report, State, Usage, number


class UsageLines:
    """Reads every line of that form while the agent runs."""

    def feed(self, line: bytes) -> Usage | None:
        """The usage that the line reports, if it is such a line."""
        return _usage(line.decode(errors="replace"))


def meter() -> UsageLines:
    """Follows the usage lines of one run."""
    return UsageLines()


def read(captured: Captured) -> Report:
    """Read stdout, each line of which is an entry; stderr's last line is the error."""
    lines = captured.stdout.decode(errors="replace").splitlines()
    usages = [usage for line in lines if (usage := _usage(line))]
    complaint = captured.stderr.decode(errors="replace").strip().splitlines()
    return Report(
        state=captured.state,
        usage=usages[-1] if usages else Usage(),
        transcript=tuple({"role": "assistant", "text": line} for line in lines),
        message="" if captured.state is State.FINISHED or not complaint else complaint[-1],
    )


def _usage(line: str) -> Usage | None:
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return read_usage(value)


def read_usage(value: Mapping[str, Any]) -> Usage | None:
    """The usage in a JSON object ``{"usage": {...}}``; None for anything else."""
    reported = value.get("usage")
    if not isinstance(reported, dict):
        return None
    return Usage(**{item.name: number(reported.get(item.name)) for item in fields(Usage)})
