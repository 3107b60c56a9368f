"""JSON from untrusted sources."""

from __future__ import annotations

import json
from typing import Any

_FREE = 10_000
"""Brackets and commas that a text of any length may have."""
_PER_BRACKET, _PER_COMMA = 16, 8
"""Bytes for each further bracket and comma. Manifests of bundles have 190 and 42."""


def bounded_json(data: bytes | str) -> Any:
    """``data`` as JSON, in memory proportional to its content. Raises ``ValueError``.

    An empty dict is two bytes long and takes thirty times as much memory. So texts that consist of
    little else are refused, and so are those that nest too deeply for Python.
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
