"""``peaks.toml``: the published peaks of one GPU of each architecture, from text to values.

A GPU may have a table ``fitted``, too: what was measured of it, instead of published.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from kabuild.base.errors import LoadError, Reason
from kabuild.base.suggest import suggest
from kabuild.loading.roots import PEAKS_FILE
from kabuild.loading.toml_file import TomlFile, read_toml
from kabuild.loading.values import describe
from kabuild.rule.attr import PathStep

_NAME, _PER_CLOCK = "gpu", "clock"
_NUMBERS = ("processors", "clock_mhz", "memory_gbs", "l1_kib", "l2_mib", "launch_us")
_FITTED = "fitted"
_ROOM = ("threads", "blocks", "shared_kib")
_TERMS = (
    *("launch", "memory", "cache", "sectors", "shared", "instructions", "special", "atomics"),
    *("trips", "barriers", "exchanges"),
)
_PARTS = (
    *("sectors", "shared", "atomics", "f64", "f32", "f16", "special", "conversion", "integer"),
    "branches",
)


def read_peaks(
    directory: Path, shown: str, architectures: Collection[str]
) -> Mapping[str, Mapping[str, Any]]:
    """By architecture, the file's table; empty without the file.

    Raises LoadError with the line of an error.
    """
    try:
        file = read_toml(directory / PEAKS_FILE, f"{shown}/{PEAKS_FILE}")
    except FileNotFoundError:
        return {}
    for name, table in file.values.items():
        if name not in architectures:
            hint = suggest(name, architectures) or f"known: {', '.join(architectures)}"
            raise _error(file, (name,), f"unknown architecture '{name}'", hint)
        _check(file, name, table)
    return file.values


def _check(file: TomlFile, name: str, table: object) -> None:
    """Refuse a table that has too little, too much, or something else than numbers above 0."""
    if not isinstance(table, dict):
        raise _error(file, (name,), f"'{name}' is {describe(table)}, expected a table")
    known = (_NAME, *_NUMBERS, _PER_CLOCK)
    _check_names(file, (name,), table, (*known, _FITTED))
    for key in known:
        if key not in table:
            raise _error(file, (name,), f"'{name}' has no '{key}'", f"it needs {', '.join(known)}")
    if not isinstance(table[_NAME], str):
        raise _error(file, (name, _NAME), f"'{_NAME}' is {describe(table[_NAME])}, expected a name")
    _check_numbers(file, (name,), {key: table[key] for key in _NUMBERS})
    _check_table(file, (name, _PER_CLOCK), table[_PER_CLOCK], _PARTS)
    _check_numbers(file, (name, _PER_CLOCK), table[_PER_CLOCK])
    if _FITTED in table:
        _check_fitted(file, (name, _FITTED), table[_FITTED])


def _check_fitted(file: TomlFile, path: tuple[PathStep, ...], table: Any) -> None:
    """Refuse a fit that lacks something: it would not rank kernels."""
    _check_table(file, path, table, (*_ROOM, "ns"), whole=True)
    _check_numbers(file, path, {key: table[key] for key in _ROOM})
    _check_table(file, (*path, "ns"), table["ns"], _TERMS, whole=True)
    _check_numbers(file, (*path, "ns"), table["ns"])


def _check_table(
    file: TomlFile,
    path: tuple[PathStep, ...],
    table: object,
    known: tuple[str, ...],
    *,
    whole: bool = False,
) -> None:
    if not isinstance(table, dict):
        raise _error(file, path, f"'{path[-1]}' is {describe(table)}, expected a table")
    _check_names(file, path, table, known)
    if whole and (missing := [key for key in known if key not in table]):
        hint = f"it needs {', '.join(known)}"
        raise _error(file, path, f"'{path[-1]}' has no '{missing[0]}'", hint)


def _check_numbers(file: TomlFile, path: tuple[PathStep, ...], table: Mapping[str, object]) -> None:
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            said = value if isinstance(value, int | float) else describe(value)
            raise _error(file, (*path, key), f"'{key}' is {said}, expected a number above 0")


def _check_names(
    file: TomlFile, path: tuple[PathStep, ...], table: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    for key in table:
        if key not in known:
            hint = suggest(key, known) or f"known: {', '.join(known)}"
            raise _error(file, (*path, key), f"unknown key '{key}'", hint, Reason.UNKNOWN_KEY)


def _error(
    file: TomlFile,
    path: tuple[PathStep, ...],
    message: str,
    hint: str = "",
    reason: Reason = Reason.BAD_ATTRIBUTE,
) -> LoadError:
    return LoadError(reason, message, position=file.position(*path), hint=hint)
