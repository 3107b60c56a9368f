"""JSON from untrusted sources."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

_FREE = 10_000
"""Brackets and commas that a text of any length may have."""
_PER_BRACKET, _PER_COMMA = 16, 8
"""Bytes for each further bracket and comma. Manifests of bundles have 190 and 42."""

_DEEPEST = 200
"""Levels of brackets. Manifests of bundles have 5; walking a value recurses a bit deeper."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def bounded_json(data: bytes | str, *, non_finite: bool = False) -> Any:
    """``data`` as JSON, in memory proportional to its content. Raises ``ValueError``.

    An empty dict is two bytes long and takes thirty times as much memory. So texts that consist of
    little else are refused, and so are those that nest deeply. What is read can be
    written again: there are no halves of UTF-16 characters and, without ``non_finite``, neither NaN
    nor infinities.
    """
    text = data.decode() if isinstance(data, bytes) else data
    brackets = text.count("[") + text.count("{")
    if brackets > _FREE + len(text) // _PER_BRACKET:
        raise ValueError("it has more brackets than content")
    if text.count(",") > _FREE + len(text) // _PER_COMMA:
        raise ValueError("it has more commas than content")
    try:
        value = json.loads(text) if non_finite else json.loads(text, **_FINITE)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if brackets > _DEEPEST:
        _check_depth(value)
    if not text.isascii() or _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a string in it has an unpaired UTF-16 surrogate") from None
    return value


def read_json(data: bytes | str) -> Any:
    """``data`` as JSON, of any form. Raises ``ValueError``, also for what nests too deeply.

    For files whose size is limited and whose form the caller checks.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST + 1):
        nested = [item for item in level if isinstance(item, dict | list)]
        level = [part for item in nested for part in _parts(item)]
    if level:
        raise ValueError("it is nested too deeply")


def _parts(item: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text[:40]} is out of range")
    return value


_FINITE: Any = {"parse_constant": _no_number, "parse_float": _finite}
