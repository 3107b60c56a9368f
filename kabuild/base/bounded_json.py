"""JSON that anyone may have written."""

from __future__ import annotations

import json
from typing import Any

_FREE = 10_000
"""Brackets, and commas, that a text of any length may have."""
_PER_BRACKET, _PER_COMMA = 16, 8
"""Bytes for each further one. Manifests of bundles have 190 and 42."""


def bounded_json(data: bytes | str) -> Any:
    """``data`` as JSON; it takes memory in proportion to what it says. Raises ``ValueError``.

    An empty dict is two bytes long and takes thirty times as much, so texts that are made of
    little else are refused, and those that nest deeper than Python can follow.
    """
    text = data.decode() if isinstance(data, bytes) else data
    brackets = text.count("[") + text.count("{")
    if brackets > _FREE + len(text) // _PER_BRACKET:
        raise ValueError("it has more brackets than content")
    if text.count(",") > _FREE + len(text) // _PER_COMMA:
        raise ValueError("it has more commas than content")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
