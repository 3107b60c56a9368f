"""How an agent that did not finish ended, in one line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from kabuild.report.failures import printable

_MOST_COLUMNS = 100
"""What is printed of how an agent ended, which may have said anything."""


def agent_end(facts: Mapping[str, Any]) -> str:
    """How it ended, and why, as it or its session says; empty for one that finished."""
    state, why = str(facts.get("state", "finished")), str(facts.get("message", ""))
    if state == "finished":
        return ""
    told = ": ".join(filter(None, ("agent", state.replace("_", " "), why)))
    return textwrap.shorten(printable(told), _MOST_COLUMNS, placeholder="...")
