"""Attribute values: checks TOML values against a rule's attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kabuild.base.errors import KabuildError
from kabuild.base.suggest import suggest
from kabuild.model.action import Source
from kabuild.model.label import Label
from kabuild.rule.attr import Attr, AttributeProblem, PathStep, Type

PLATFORM = "{platform}"
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
    Type.TABLE: dict,
    Type.TABLES: list,
}
_ITEMS: Mapping[Type, type] = {
    Type.LABELS: str,
    Type.FILES: str,
    Type.STRINGS: str,
    Type.TABLES: dict,
}


class Files(Protocol):
    """The files that a target may name. All methods raise AttributeProblem for missing files."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory at ``path``."""
        ...

    def matches(self, pattern: str) -> bool:
        """Whether there is a file at a path, or one that a glob finds."""
        ...

    def file(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The file at ``path``; ``at`` leads to it in the attribute, for errors."""
        ...

    def tree(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The directory at ``path``."""
        ...

    def files(self, patterns: Sequence[str]) -> tuple[Source, ...]:
        """The files of all paths and globs, sorted, each once."""
        ...


class AttributeReader:
    """Reads the attributes of one package's targets. Raises AttributeProblem."""

    def __init__(self, files: Files, package: str) -> None:
        self._files = files
        self._package = package
        self._readers: Mapping[Type, Callable[[Any], Any]] = {
            Type.LABEL: self._template,
            Type.LABELS: self._labels,
            Type.FILE: files.file,
            Type.FILES: files.files,
            Type.TREE: files.tree,
            Type.STRINGS: tuple,
            Type.TABLES: tuple,
        }

    def read(self, attr: Attr, value: Any) -> Any:
        """The declared ``value``, checked, as rules see it."""
        check_value(attr, value)
        read = self._readers.get(attr.type)
        return read(value) if read else value

    def default(self, attr: Attr) -> Any:
        """The value of an undeclared attribute.

        A default file or directory counts only if it exists. A default label with ``{platform}``
        stays text, since loading does not know the platform.
        """
        value = attr.default
        if attr.type is Type.LABEL:
            return self._template(value) if value is not None else None
        if attr.type is Type.LABELS:
            return self._labels(value)
        if attr.type in {Type.FILE, Type.TREE}:
            found = value is not None and self._files.exists(value)
            return self._readers[attr.type](value) if found else None
        if attr.type is Type.FILES:
            return self._files.files([path for path in value if self._files.matches(path)])
        return value

    def _template(self, text: str, path: tuple[PathStep, ...] = ()) -> Label | str:
        """A label; one with ``{platform}`` stays text until the platform is known."""
        return text if PLATFORM in text else self._label(text, path)

    def _label(self, text: str, path: tuple[PathStep, ...] = ()) -> Label:
        try:
            return Label.parse(text, package=self._package)
        except KabuildError as error:
            raise AttributeProblem(error.message, path, error.hint, reason=error.reason) from None

    def _labels(self, texts: Sequence[str]) -> tuple[Label | str, ...]:
        return tuple(self._template(text, (index,)) for index, text in enumerate(texts))


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
