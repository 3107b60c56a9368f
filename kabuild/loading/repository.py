"""External repositories: checkouts of benchmarks, as WORKSPACE.toml names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.base.errors import KabuildError, LoadError, Position, Reason
from kabuild.base.suggest import suggest
from kabuild.loading.toml_file import TomlFile
from kabuild.model.label import check_repository

TABLE = "repository"
LOCKS = "imports"
_KEYS = ("name", "adapter", "path", "commit")
_COMMIT = re.compile(r"[0-9a-f]{40}")
ADAPTER_NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Valid names of adapters: each is a module, ``rules/imports/adapters/<name>.py``."""


@dataclass(frozen=True)
class Repository:
    """One ``[[repository]]`` of WORKSPACE.toml.

    Attributes:
        name: its name in labels: ``@name//...``.
        adapter: the module that reads it, ``rules/imports/adapters/<adapter>.py``.
        path: its checkout on this machine, absolute.
        shown: the path as written in the file.
        commit: the required commit of the checkout; ``""`` for any.
        position: the table's.
    """

    name: str
    adapter: str
    path: Path
    shown: str
    commit: str
    position: Position

    @property
    def root(self) -> str:
        """The name of its root in ``Source``."""
        return f"@{self.name}"

    @property
    def lock(self) -> str:
        """Its lock, relative to the workspace."""
        return f"{LOCKS}/{self.name}.lock.toml"


def read_repositories(file: TomlFile, workspace: Path) -> Mapping[str, Repository]:
    """The repositories by name. Raises LoadError at the line that is wrong."""
    tables = file.values.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _error(file, (TABLE,), f"'{TABLE}' must be a list of tables: [[{TABLE}]]")
    found: dict[str, Repository] = {}
    for index, table in enumerate(tables):
        repository = _read(file, index, table, workspace)
        if repository.name in found:
            what = f"the repository '{repository.name}' is declared twice"
            raise _error(file, (TABLE, index, "name"), what, Reason.DUPLICATE_TARGET)
        found[repository.name] = repository
    return found


def _read(file: TomlFile, index: int, table: Mapping[str, Any], workspace: Path) -> Repository:
    for problem in _problems(file, index, table):
        raise problem
    try:
        check_repository(table["name"])
    except KabuildError as error:
        where = (TABLE, index, "name")
        raise _error(file, where, error.message, error.reason, error.hint) from None
    return Repository(
        name=table["name"],
        adapter=table["adapter"],
        path=_resolved(file, index, workspace, table["path"]),
        shown=table["path"],
        commit=table.get("commit", ""),
        position=file.position(TABLE, index),
    )


def _resolved(file: TomlFile, index: int, workspace: Path, text: str) -> Path:
    """The checkout's directory, absolute. Raises LoadError for an invalid path."""
    try:
        return (workspace / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # an unknown user, a loop, a NUL
        why = getattr(error, "strerror", None) or error
        what = f"'path' cannot be followed: {why}"
        raise _error(file, (TABLE, index, "path"), what) from None


def _problems(file: TomlFile, index: int, table: Mapping[str, Any]) -> Iterator[LoadError]:
    for key, value in table.items():
        where = (TABLE, index, key)
        if key not in _KEYS:
            hint = suggest(key, _KEYS) or f"known: {', '.join(_KEYS)}"
            what = f"unknown key '{key}' in [[{TABLE}]]"
            yield _error(file, where, what, Reason.UNKNOWN_KEY, hint)
        elif not isinstance(value, str) or not value:
            yield _error(file, where, f"'{key}' must be a string that is not empty")
    for key in ("name", "adapter", "path"):
        if key not in table:
            what = f"a [[{TABLE}]] without '{key}'"
            yield _error(file, (TABLE, index), what, Reason.MISSING_ATTRIBUTE)
    if not ADAPTER_NAME.fullmatch(table["adapter"]):
        what = f"'{table['adapter']}' is not the name of an adapter"
        hint = "use lower-case letters, digits and '_', and begin with a letter"
        yield _error(file, (TABLE, index, "adapter"), what, hint=hint)
    if not _COMMIT.fullmatch(table.get("commit", "0" * 40)):
        what = f"'{table['commit']}' is not a commit"
        hint = "write all 40 hexadecimal digits: git rev-parse HEAD"
        yield _error(file, (TABLE, index, "commit"), what, hint=hint)


def _error(
    file: TomlFile,
    path: tuple[str | int, ...],
    message: str,
    reason: Reason = Reason.BAD_ATTRIBUTE,
    hint: str = "",
) -> LoadError:
    return LoadError(reason, message, position=file.position(*path), hint=hint)
