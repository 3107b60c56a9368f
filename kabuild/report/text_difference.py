"""What differs between two texts: of JSON the values, by where they are; else the lines."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from typing import Any

_MOST_LINES, _MOST_COLUMNS, _MOST_VALUE = 40, 400, 80

_NAME = re.compile(r"[\w-]+")
_ABSENT = object()


def text_difference(name: str, old: str, new: str) -> list[str]:
    """At most 41 lines that say how ``new`` is another ``old``. ``name`` is the file's."""
    lines = _values(name, old, new) or _lines(name, old, new)
    shown = [_cut(line, _MOST_COLUMNS) for line in lines[:_MOST_LINES]]
    left = len(lines) - len(shown)
    return [*shown, f"... {left} more lines"] if left else shown


def _lines(name: str, old: str, new: str) -> list[str]:
    texts = (old.splitlines(), new.splitlines())
    return list(difflib.unified_diff(*texts, name, name, lineterm="", n=1))


def _values(name: str, old: str, new: str) -> list[str]:
    """A line for each value that differs; none where one of both is no JSON object or array."""
    try:
        values = (json.loads(old), json.loads(new))
        if not all(isinstance(value, dict | list) for value in values):
            return []
        return [f"{name}: {where}: {what}" for where, what in _between("", *values)]
    except (ValueError, RecursionError):
        return []


def _between(where: str, old: Any, new: Any) -> Iterator[tuple[str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            place = _below(where, key)
            yield from _between(place, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        first, last = _alike(old, new), 0
        if len(old) != len(new):
            last = _alike(old[first:][::-1], new[first:][::-1])
        for at in range(first, max(len(old), len(new)) - last):
            before = old[at] if at < len(old) - last else _ABSENT
            after = new[at] if at < len(new) - last else _ABSENT
            yield from _between(f"{where}[{at}]", before, after)
    elif (before := _told(old)) != (after := _told(new)):
        yield where or "all", f"{_cut(before, _MOST_VALUE)} -> {_cut(after, _MOST_VALUE)}"


def _alike(old: list[Any], new: list[Any]) -> int:
    """How many of the first elements are the same."""
    same = (_told(one) == _told(other) for one, other in zip(old, new, strict=False))
    return next((at for at, is_same in enumerate(same) if not is_same), min(len(old), len(new)))


def _below(where: str, key: str) -> str:
    if not _NAME.fullmatch(key):
        return f"{where}[{json.dumps(key)}]"
    return f"{where}.{key}" if where else key


def _told(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
