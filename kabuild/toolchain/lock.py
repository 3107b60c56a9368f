"""``toolchains/lock.toml``: the content of the toolchains that BUILD.toml files declare."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.errors import LoadError, Position, Reason
from kabuild.base.fs import atomic_write
from kabuild.base.reading import read_plain
from kabuild.base.toml_values import TomlError, toml_values
from kabuild.toolchain.declaration import Declaration, Distribution, Environment, Fetched, LocalTree

LOCK_FILE = "toolchains/lock.toml"
SCHEMA = 1
MOST_BYTES = 64 << 20
_HEAD = """\
# What the toolchains of this workspace are, by content. Written by `kabuild toolchain lock`
# and `kabuild toolchain pin`; not to be edited.
"""


@dataclass(frozen=True, order=True)
class LockedFile:
    """One file to fetch.

    Attributes:
        name: of a wheel or an archive; of a Debian package its path below a mirror.
        pin: the requirement that it satisfies; "" for an archive, whose URL may change.
        size: in bytes.
    """

    name: str
    pin: str
    sha256: str
    size: int

    @property
    def base(self) -> str:
        """The last part of its name."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class LockEntry:
    """The locked content of one toolchain.

    Attributes:
        kind: of pin; ``local`` also if an installed tree was adopted instead.
        declared: the declaration when the entry was written.
        files: what to fetch, by machine.
        home, paths, tree: of an adopted tree: where it is, its parts that count, and the
            digest over them.
        installed: ``name==version`` of the distributions of the running Python.
    """

    kind: str
    declared: tuple[str, ...] = ()
    files: Mapping[str, tuple[LockedFile, ...]] = field(default_factory=dict, hash=False)
    home: str = ""
    paths: tuple[str, ...] = ()
    tree: str = ""
    installed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lock:
    """The entries by label, such as ``//toolchains/cuda:nvcc``, with positions."""

    entries: Mapping[str, LockEntry] = field(default_factory=dict, hash=False)
    positions: Mapping[str, Position] = field(default_factory=dict, hash=False)

    def find(self, declaration: Declaration) -> LockEntry | None:
        """The entry of a toolchain."""
        return self.entries.get(str(declaration.label))

    def position(self, declaration: Declaration) -> Position:
        """The position of a toolchain's entry, or else of its declaration."""
        return self.positions.get(str(declaration.label), declaration.position)

    def over(self, other: Lock) -> Lock:
        """Both locks merged; entries of this one take precedence."""
        return Lock({**other.entries, **self.entries}, {**other.positions, **self.positions})


def declared(declaration: Declaration) -> tuple[str, ...]:
    """The part of a declaration that determines the lock, as text, without hosts."""
    pin = declaration.pin
    if isinstance(pin, Environment):
        return tuple(sorted(pin.distributions))
    if isinstance(pin, Distribution):
        return (f"{pin.name}=={pin.version}",)
    if isinstance(pin, LocalTree):
        return (pin.home, *pin.paths)
    if pin.kind == "archive":
        return (f"sha256:{pin.sha256}", *pin.machines)
    return (*pin.requirements, *pin.machines)


def is_current(entry: LockEntry, declaration: Declaration) -> bool:
    """Whether the entry was written for this declaration."""
    return entry.declared == declared(declaration)


def is_adopted(entry: LockEntry | None, declaration: Declaration) -> bool:
    """Whether an installed tree replaces the declared one."""
    fetched = isinstance(declaration.pin, Fetched)
    return entry is not None and entry.kind == "local" and fetched


def read_lock(path: Path, shown: str = LOCK_FILE) -> Lock:
    """The lock at ``path``; empty if there is none.

    Raises LoadError(BAD_LOCK) for a malformed one.
    """
    try:
        data = read_plain(path, MOST_BYTES)
        values = toml_values(data)
    except FileNotFoundError:
        return Lock()
    except TomlError as error:
        raise _bad(shown, str(error), Position(shown, error.line)) from None
    except (OSError, ValueError) as error:
        raise _bad(shown, str(error)) from None
    _check_schema(shown, values)
    positions = {
        line[2:].partition('"')[0]: Position(shown, number)
        for number, line in reversed([*enumerate(data.decode().splitlines(), 1)])
        if line.startswith('["')
    }
    entries: dict[str, LockEntry] = {}
    for label, table in values.items():
        try:
            entries[label] = _entry(table)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"its entry for {label} is incomplete: {error}"
            raise _bad(shown, problem, positions.get(label)) from None
    return Lock(entries, positions)


def _check_schema(shown: str, values: dict[str, Any]) -> None:
    """Take the schema out of the values of a lock. Raises LoadError."""
    found = values.pop("schema", None)
    if found is None:
        raise _bad(shown, f"it is no lock, or was cut off: it has no 'schema = {SCHEMA}'")
    if found != SCHEMA:
        what = f"another version of kabuild wrote it: its schema is {found!r:.40}, not {SCHEMA}"
        raise _bad(shown, what)


def read_locks(workspace: Path, builtin: Path) -> Lock:
    """The lock of a workspace, over that of the toolchains that ship with kabuild.

    Raises as ``read_lock``.
    """
    lock = read_lock(workspace / LOCK_FILE)
    if builtin == workspace:
        return lock
    shipped = builtin / LOCK_FILE
    return lock.over(read_lock(shipped, str(shipped)))


def write_lock(path: Path, entries: Mapping[str, LockEntry]) -> None:
    """Write a lock: equal entries give equal bytes. Raises ``OSError``."""
    atomic_write(path, render(entries).encode())


def render(entries: Mapping[str, LockEntry]) -> str:
    """The text of a lock, sorted."""
    parts = [f"{_HEAD}\nschema = {SCHEMA}\n"]
    for label, entry in sorted(entries.items()):
        lines = [f"[{_text(label)}]", f"kind = {_text(entry.kind)}"]
        lines += [
            line
            for name in ("declared", "installed", "home", "paths", "tree")
            if (line := _line(name, getattr(entry, name)))
        ]
        parts.append("\n".join(lines) + "\n")
        for machine, files in sorted(entry.files.items()):
            rows = [f"[{_text(label)}.files.{machine}]", *map(_row, sorted(files))]
            parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def _entry(table: Mapping[str, Any]) -> LockEntry:
    files = {
        machine: tuple(
            LockedFile(name, _string(row, "pin"), _sha256(row), _size(row))
            for name, row in rows.items()
        )
        for machine, rows in table.get("files", {}).items()
    }
    return LockEntry(
        kind=_string(table, "kind", required=True),
        declared=_strings(table, "declared"),
        files=files,
        home=_string(table, "home"),
        paths=_strings(table, "paths"),
        tree=_string(table, "tree"),
        installed=_strings(table, "installed"),
    )


def _string(table: Mapping[str, Any], name: str, *, required: bool = False) -> str:
    value = table[name] if required else table.get(name, "")
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"'{name}' is {_kind_of(value)}, expected a string")
    return value


def _strings(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = table.get(name, [])
    if not isinstance(values, list):
        raise ValueError(f"'{name}' is {_kind_of(values)}, expected a list of strings")
    return tuple(_string({name: value}, name) for value in values)


def _size(row: Mapping[str, Any]) -> int:
    size = row["size"]
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 1 << 50:
        raise ValueError(f"'size' is {_kind_of(size)}, expected bytes")
    return size


def _kind_of(value: object) -> str:
    return f"{value!r:.40}" if isinstance(value, str | bool | float) else type(value).__name__


def _sha256(row: Mapping[str, Any]) -> str:
    text = _string(row, "sha256", required=True)
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ValueError(f"'{text}' is not a SHA-256")
    return text


def _row(file: LockedFile) -> str:
    pin = f"pin = {_text(file.pin)}, " if file.pin else ""
    return f"{_text(file.name)} = {{ {pin}size = {file.size}, sha256 = {_text(file.sha256)} }}"


def _line(name: str, value: str | Iterable[str]) -> str:
    """``name = value``; nothing for an empty value."""
    if isinstance(value, str):
        return f"{name} = {_text(value)}" if value else ""
    items = [*map(_text, value)]
    one = f"{name} = [{', '.join(items)}]"
    if not items or len(one) <= 100:
        return one if items else ""
    return "\n".join([f"{name} = [", *(f"  {item}," for item in items), "]"])


def _text(value: str) -> str:
    """A TOML string: JSON's, which TOML takes over."""
    return json.dumps(value, ensure_ascii=False)


def _bad(shown: str, problem: str, position: Position | None = None) -> LoadError:
    return LoadError(
        Reason.BAD_LOCK,
        f"the lock cannot be read: {problem}",
        position=position or Position(shown),
        hint="restore it, or remove it and run: kabuild toolchain lock",
    )
