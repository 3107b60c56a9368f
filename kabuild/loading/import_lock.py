"""``imports/<name>.lock.toml``: the facts of an import about a repository's tasks.

It holds facts and no text of the benchmark. A lock may describe hundreds of tasks, and most
commands need a few of them, so the text is cut at its ``[[task]]`` headers and each part is
parsed when that task is needed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kabuild.base.errors import LoadError, Position, Reason
from kabuild.base.printing import in_line
from kabuild.base.reading import read_plain
from kabuild.model.label import names_package

SCHEMA = 1
MOST_BYTES = 64 << 20
_HEADER = re.compile(r"^\[\[task\]\]\n", re.MULTILINE)
_NAME = re.compile(r'name = "([^"\\\n]+)"\n')
_ATTRS = "\n[task.attrs]\n"
_LEFT_OUT = "left_out = "


@dataclass(frozen=True)
class LeftOut:
    """Why a task could not be imported: a class, and a sentence for people."""

    reason: str
    why: str


@dataclass(frozen=True)
class LockedTask:
    """One task of a repository.

    Attributes:
        name: its package below the repository.
        files: SHA-256 of its original files, by path in the checkout.
        origin: digest of what the task computes, independent of formatting: equal for copies.
        kind: the rule of its target; ``""`` if it was left out.
        tags: the target's tags.
        left_out: why there is no target.
        position: the task's place in the lock.
    """

    name: str
    files: Mapping[str, str] = field(hash=False)
    origin: str
    kind: str
    tags: tuple[str, ...]
    left_out: LeftOut | None
    position: Position
    _attrs: str = field(repr=False, default="")

    @cached_property
    def attrs(self) -> Mapping[str, Any]:
        """The target's attributes, as in a BUILD.toml. Raises LoadError(BAD_LOCK)."""
        try:
            return tomllib.loads(self._attrs)
        except (ValueError, RecursionError) as error:
            raise _bad(self.position, f"the task '{self.name}' cannot be read: {error}") from None


@dataclass(frozen=True)
class Terms:
    """A benchmark's licence:

    its SPDX name, whether files may be redistributed, and perhaps a note.
    """

    licence: str
    redistribute: bool
    note: str = ""


@dataclass(frozen=True)
class ImportLock:
    """A lock: facts about the repository, and its tasks, parsed on demand.

    ``adapter`` is the digest of the code that wrote it, ``commit`` the checkout's.
    """

    shown: str
    adapter: str
    commit: str
    terms: Terms
    _parts: Mapping[str, tuple[int, str]] = field(repr=False, hash=False)

    def names(self) -> tuple[str, ...]:
        """The tasks that have a target, sorted."""
        return self._names[0]

    def left_out(self) -> tuple[str, ...]:
        """The tasks that have no target, sorted."""
        return self._names[1]

    def has(self, name: str) -> bool:
        """Whether the lock has a task of that name, imported or left out."""
        return name in self._parts

    def tasks(self) -> Iterator[LockedTask]:
        """All tasks, in the order of the file."""
        return (self.task(name) for name in self._parts)

    def task(self, name: str) -> LockedTask:
        """The task ``name``, which ``has`` knows. Raises LoadError(BAD_LOCK)."""
        line, text = self._parts[name]
        position = Position(self.shown, line)
        try:
            head, _, attrs = text.partition(_ATTRS)
            table = tomllib.loads(head)["task"][0]
            absent = table.get("left_out")
            return LockedTask(
                name=_text(table, "name"),
                files=_texts(table["files"], "files"),
                origin=_text(table, "origin", ""),
                kind=_text(table, "kind", ""),
                tags=tuple(_each_text(table.get("tags", []), "tags")),
                left_out=_left_out(absent) if absent else None,
                position=position,
                _attrs=attrs,
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise _bad(position, f"the task '{name}' cannot be read: {_said(error)}") from None

    @cached_property
    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        absent = {name for name, (_, text) in self._parts.items() if f"\n{_LEFT_OUT}" in text}
        return tuple(sorted({*self._parts} - absent)), tuple(sorted(absent))


def read_import_lock(path: Path, shown: str) -> ImportLock:
    """The lock at ``path``, called ``shown`` in messages.

    Raises LoadError(BAD_LOCK) for a malformed one, and ``FileNotFoundError``.
    """
    try:
        text = read_plain(path, MOST_BYTES).decode()
    except FileNotFoundError:
        raise
    except UnicodeDecodeError:
        raise _bad(Position(shown), "the lock is not UTF-8") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise _bad(Position(shown), f"the lock cannot be read: {why}") from None
    headers = [match.start() for match in _HEADER.finditer(text)]
    try:
        head = tomllib.loads(text[: headers[0]] if headers else text)
        if head["schema"] != SCHEMA:
            raise ValueError(f"its schema is {head['schema']}, expected {SCHEMA}")
        terms = head["terms"]
        return ImportLock(
            shown,
            _text(head, "adapter"),
            _text(head, "commit", ""),
            _terms(terms),
            _parts(_cut(text, headers), shown),
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _bad(Position(shown), f"the lock cannot be read: {_said(error)}") from None


def _cut(text: str, headers: list[int]) -> Iterator[tuple[str, tuple[int, str]]]:
    """Name, line and text of each task."""
    line = text.count("\n", 0, headers[0]) + 1 if headers else 0
    for begin, end in zip(headers, [*headers[1:], len(text)], strict=True):
        part = text[begin:end]
        name = _NAME.match(part, part.index("\n") + 1)
        if name is None:
            raise ValueError(f"the task at line {line} does not begin with its name")
        yield name[1], (line, part)
        line += part.count("\n")


def _parts(cut: Iterable[tuple[str, tuple[int, str]]], shown: str) -> Mapping[str, tuple[int, str]]:
    """The tasks by name. A name becomes a path below ``out/``, so it must be a package's."""
    parts: dict[str, tuple[int, str]] = {}
    for name, (line, part) in cut:
        if not names_package(name):
            what = f"'{in_line(name)[:200]}' is not a valid name of a task"
            raise _bad(Position(shown, line), what)
        if name in parts:
            what = f"two tasks are called '{name}'; the other one is at line {parts[name][0]}"
            raise _bad(Position(shown, line), what)
        parts[name] = line, part
    return parts


def _terms(table: Mapping[str, Any]) -> Terms:
    licence, note = _text(table, "licence"), _text(table, "note", "")
    return Terms(in_line(licence), table["redistribute"] is True, in_line(note))


def _left_out(table: Mapping[str, Any]) -> LeftOut:
    """As the lock says it, in single lines that are safe to print."""
    return LeftOut(in_line(_text(table, "reason")), in_line(_text(table, "why")))


def _text(table: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """A string. Raises KeyError if it is missing but required, TypeError if it is not a string."""
    if not isinstance(table, dict):
        raise TypeError(f"expected a table with '{key}'")
    found = table[key] if default is None else table.get(key, default)
    return _each_text([found], key)[0]


def _texts(value: object, key: str) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise TypeError(f"'{key}' must be a table")
    _each_text([*value.values()], key)
    return value


def _each_text(values: object, key: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"'{key}' must hold only strings")
    return values


def _said(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _bad(position: Position, problem: str) -> LoadError:
    return LoadError(
        Reason.BAD_LOCK,
        problem,
        position=position,
        hint="import it again: kabuild import ADAPTER PATH",
    )
