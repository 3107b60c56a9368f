"""TOML values: checks them against the types of attributes, and says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kabuild.base.suggest import suggest
from kabuild.rule.attr import Attr, AttributeProblem, Type

_TYPES: Mapping[Type, type | tuple[type, ...]] = {
    Type.STRING: str,
    Type.INTEGER: int,
    Type.NUMBER: (int, float),
    Type.BOOLEAN: bool,
    Type.LABEL: str,
    Type.LABELS: list,
    Type.FILE: str,
    Type.FILES: list,
    Type.TREE: str,
    Type.STRINGS: list,
    Type.PLATFORMS: list,
    Type.TABLE: dict,
    Type.BY_PLATFORM: dict,
    Type.TABLES: list,
}
_ITEMS: Mapping[Type, type] = {
    Type.LABELS: str,
    Type.FILES: str,
    Type.STRINGS: str,
    Type.PLATFORMS: str,
    Type.TABLES: dict,
}


def check_value(attr: Attr, value: Any) -> None:
    """Raise AttributeProblem for an invalid value."""
    _check_type(attr.type, value)
    if attr.values and value not in attr.values:
        known = ", ".join(f"'{name}'" for name in attr.values)
        raise AttributeProblem(
            f"found '{value}', expected one of {known}", hint=suggest(value, attr.values)
        )
    if attr.check:
        attr.check(value)


def _check_type(type_: Type, value: Any) -> None:
    """Check a value's type; unlike in Python, booleans are not numbers."""
    if not isinstance(value, _TYPES[type_]) or (
        isinstance(value, bool) and type_ is not Type.BOOLEAN
    ):
        raise AttributeProblem(f"found {describe(value)}, expected {type_.value}")
    if type_ in _ITEMS and isinstance(value, list):
        _check_items(type_, value)


def _check_items(type_: Type, items: list[Any]) -> None:
    for index, item in enumerate(items):
        if not isinstance(item, _ITEMS[type_]):
            raise AttributeProblem(
                f"found {describe(item)} in the list, expected {type_.value}", (index,)
            )


def describe(value: Any) -> str:
    """A TOML value with its type, in words."""
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int):
        return f"the integer {value}"
    if isinstance(value, float):
        return f"the number {value}"
    if isinstance(value, str):
        text = value if len(value) <= 40 else f"{value[:37]}..."
        return f'the string "{text}"'
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, dict) else "a date or time"
