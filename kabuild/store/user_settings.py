"""``~/.config/kabuild/config.toml``: a user's settings for all workspaces."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.base.errors import InfraError, LoadError, Position, Reason
from kabuild.base.reading import read_plain
from kabuild.base.sizes import parse_size
from kabuild.base.suggest import suggest
from kabuild.base.toml_values import TomlError, toml_values
from kabuild.base.user_dirs import home_directory, xdg_directory

MOST_BYTES = 1 << 20
_KNOWN: Mapping[str, tuple[str, ...]] = {"cache": ("size",)}
"""The keys of each table."""
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
"""Errors that mean a shortage of the machine, whatever the file holds."""


@dataclass(frozen=True)
class UserSettings:
    """``cache_size`` is in bytes; None if not set."""

    cache_size: int | None = None


def user_file(env: Mapping[str, str] = os.environ) -> Path:
    """The path of the user's file."""
    base = xdg_directory("XDG_CONFIG_HOME", env) or home_directory(env) / ".config"
    return base / "kabuild" / "config.toml"


def read_user_settings(env: Mapping[str, str] = os.environ) -> UserSettings:
    """The user's settings.

    Raises LoadError with the line of an invalid or unknown setting, InfraError if the machine
    cannot read it.
    """
    file = user_file(env)
    try:
        data = read_plain(file, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # another user's home
        return UserSettings()
    except (OSError, ValueError) as error:
        why = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if getattr(error, "errno", None) in _SHORTAGES:
            raise InfraError(Reason.NO_RESOURCES, f"{file} {why}") from None
        raise LoadError(Reason.MISSING_FILE, why, position=Position(str(file))) from None
    return _Reader(str(file), data).settings()


class _Reader:
    """One file, whose lines errors name."""

    def __init__(self, shown: str, data: bytes) -> None:
        self._shown = shown
        self._text = data.decode(errors="replace")
        self._data = data

    def settings(self) -> UserSettings:
        values = self._values()
        self._refuse_unknown("", values, tuple(_KNOWN))
        for name, table in values.items():
            if not isinstance(table, dict):
                raise self._error(Reason.BAD_ATTRIBUTE, f"'{name}' must be a table: [{name}]", name)
            self._refuse_unknown(name, table, _KNOWN[name])
        size = values.get("cache", {}).get("size")
        try:
            return UserSettings(None if size is None else parse_size(str(size)))
        except ValueError as error:
            raise self._error(Reason.BAD_ATTRIBUTE, f"[cache] size: {error}", "size") from None

    def _values(self) -> dict[str, Any]:
        try:
            return toml_values(self._data)
        except TomlError as error:
            position = Position(self._shown, error.line)
            raise LoadError(Reason.TOML_SYNTAX, str(error), position=position) from None

    def _refuse_unknown(self, table: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
        where = f" in [{table}]" if table else ""
        for name in found:
            if name not in known:
                hint = suggest(name, known) or f"known: {', '.join(known)}"
                raise self._error(
                    Reason.UNKNOWN_KEY,
                    f"unknown {'key' if table else 'table'} '{name}'{where}",
                    name,
                    hint,
                )

    def _error(self, reason: Reason, message: str, name: str, hint: str = "") -> LoadError:
        """At the first line with ``name`` that is not a comment."""
        named = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        lines = enumerate(self._text.splitlines(), 1)
        found = (n for n, line in lines if named.search(line.partition("#")[0]))
        return LoadError(reason, message, position=Position(self._shown, next(found, 0)), hint=hint)
