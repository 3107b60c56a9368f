"""Attributes of rules, with types, defaults and checks.

A check gets the TOML value, and raises ``AttributeProblem`` with the path to the wrong part, so
that the error names its line::

    def check_dims(dims: Mapping[str, Any]) -> None:
        for name, text in dims.items():
            if not RANGE.fullmatch(text):
                raise AttributeProblem(f"'{text}' is not a range", (name,), "write 1..4096")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from kabuild.base.errors import Reason

Check = Callable[[Any], None]
PathStep = str | int


class AttributeProblem(Exception):  # noqa: N818 - becomes a LoadError with a position
    """A declared value is invalid.

    ``path`` leads from the checked value to the invalid part: keys and indices.
    """

    def __init__(
        self,
        message: str,
        path: tuple[PathStep, ...] = (),
        hint: str = "",
        *,
        reason: Reason = Reason.BAD_ATTRIBUTE,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint
        self.reason = reason


@unique
class Type(Enum):
    """The types of attributes; the values name TOML types."""

    STRING = "a string"
    INTEGER = "an integer"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    LABEL = "a label"
    LABELS = "a list of labels"
    FILE = "the path of a file"
    FILES = "a list of files or globs"
    TREE = "the path of a directory"
    STRINGS = "a list of strings"
    PLATFORMS = "a list of platforms"
    TABLE = "a table"
    BY_PLATFORM = "a table by platform"
    TABLES = "a list of tables"


@dataclass(frozen=True)
class Attr:
    """One attribute of a rule.

    After loading, FILE and TREE are ``Source``, FILES a tuple of ``Source``, LABEL a ``Label``,
    LABELS and STRINGS tuples; others keep their TOML value. A default label may contain
    ``{platform}``. An optional attribute without default is None.
    """

    type: Type
    doc: str
    required: bool = False
    default: Any = None
    values: tuple[str, ...] = ()
    check: Check | None = None


def string(
    doc: str,
    *,
    required: bool = False,
    default: str | None = None,
    values: tuple[str, ...] = (),
    check: Check | None = None,
) -> Attr:
    """A string; ``values`` lists the only ones allowed, if given."""
    return Attr(Type.STRING, doc, required, default, values, check)


def integer(
    doc: str, *, required: bool = False, default: int | None = None, check: Check | None = None
) -> Attr:
    """An integer."""
    return Attr(Type.INTEGER, doc, required, default, check=check)


def number(
    doc: str, *, required: bool = False, default: float | None = None, check: Check | None = None
) -> Attr:
    """An integer or a float."""
    return Attr(Type.NUMBER, doc, required, default, check=check)


def boolean(doc: str, *, default: bool = False) -> Attr:
    """True or false."""
    return Attr(Type.BOOLEAN, doc, default=default)


def label(doc: str, *, required: bool = False, default: str | None = None) -> Attr:
    """Another target, analysed before this one."""
    return Attr(Type.LABEL, doc, required, default)


def labels(doc: str, *, default: tuple[str, ...] = ()) -> Attr:
    """Other targets, analysed before this one."""
    return Attr(Type.LABELS, doc, default=default)


def file(doc: str, *, required: bool = False, default: str | None = None) -> Attr:
    """A file of the package. A default counts only if that file exists."""
    return Attr(Type.FILE, doc, required, default)


def files(doc: str, *, default: tuple[str, ...] = ()) -> Attr:
    """Files of the package, by path or glob (``src/*.h``, ``**`` for any depth)."""
    return Attr(Type.FILES, doc, default=default)


def tree(doc: str, *, required: bool = False, default: str | None = None) -> Attr:
    """A directory of the package, taken whole. A default counts only if it exists."""
    return Attr(Type.TREE, doc, required, default)


def strings(
    doc: str, *, required: bool = False, default: tuple[str, ...] = (), check: Check | None = None
) -> Attr:
    """A list of strings."""
    return Attr(Type.STRINGS, doc, required, default, check=check)


def platforms(doc: str) -> Attr:
    """A list of names of platforms."""
    return Attr(Type.PLATFORMS, doc, default=())


def table(
    doc: str,
    *,
    required: bool = False,
    default: dict[str, Any] | None = None,
    check: Check | None = None,
) -> Attr:
    """A TOML table."""
    return Attr(Type.TABLE, doc, required, default or {}, check=check)


def by_platform(doc: str) -> Attr:
    """A TOML table whose keys are names of platforms."""
    return Attr(Type.BY_PLATFORM, doc, default={})


def tables(
    doc: str, *, required: bool = False, default: tuple[Any, ...] = (), check: Check | None = None
) -> Attr:
    """A list of TOML tables."""
    return Attr(Type.TABLES, doc, required, default, check=check)
