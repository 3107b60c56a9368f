"""Documents as trees of values: changed as values, and written as TOML."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from datetime import date
from typing import Any

from tests.hostile.draw import Draw

Place = tuple[Any, Any]
"""A container and the key or index of something in it."""


def places(tree: Any) -> list[Place]:
    """Everything that a tree holds."""
    found: list[Place] = []
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        found.append((tree, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def changed(draw: Draw, tree: Any, value: Callable[[], Any] | None = None) -> Any:
    """A copy with one to three changes: another value, no value, another name, one too many."""
    tree = copy.deepcopy(tree)
    make = value or draw.value
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        everything = places(tree)
        if not everything:
            return tree
        parent, key = draw.choice(everything)
        old = parent[key]
        match draw.randint(0, 9):
            case 0:
                del parent[key]
            case 1 if isinstance(parent, dict):
                parent[draw.text()] = parent.pop(key)
            case 2 if isinstance(parent, dict):
                parent[draw.text() or "x"] = make()
            case 3 if isinstance(parent, list):
                parent += [old] * draw.choice((1, 100))
            case 4:
                parent[key] = [old]
            case 5:
                parent[key] = {"x": old}
            case 6 if isinstance(old, str):
                parent[key] = draw.damaged(old.encode()).decode(errors="replace")
            case 7:
                other, name = draw.choice(everything)
                if (isinstance(other, dict) and name in other) or (
                    isinstance(other, list) and name < len(other)
                ):
                    parent[key] = copy.deepcopy(other[name])
            case _:
                parent[key] = make()
    return tree


def to_toml(table: dict[str, Any]) -> str:
    """A table as TOML, all below the first level inline."""
    lines: list[str] = []
    later: list[str] = []
    for key, value in table.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for item in value:
                later.append(f"\n[[{_key(key)}]]")
                later += [f"{_key(name)} = {_inline(part)}" for name, part in item.items()]
        elif isinstance(value, dict):
            later.append(f"\n[{_key(key)}]")
            later += [f"{_key(name)} = {_inline(part)}" for name, part in value.items()]
        else:
            lines.append(f"{_key(key)} = {_inline(value)}")
    return "\n".join([*lines, *later, ""])


def _key(key: Any) -> str:
    return _text(str(key))


def _text(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return str(value)
        case int() | float() | date():
            return str(value)
        case dict():
            return f"{{ {', '.join(f'{_key(k)} = {_inline(v)}' for k, v in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(_inline, value))}]"
        case _:
            return _text(str(value))
