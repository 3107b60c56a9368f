"""Adapters: the modules that know how a benchmark lays out its tasks."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.bytecode import ExactLoader
from kabuild.base.errors import LoadError, Position, Reason, UsageError, described
from kabuild.base.suggest import suggest
from kabuild.imports.facts import left_out
from kabuild.loading import builtin_root
from kabuild.loading.checkout import Checkout
from kabuild.loading.import_lock import LeftOut, Terms
from kabuild.loading.repository import ADAPTER_NAME
from kabuild.model.action import Source
from kabuild.model.label import names_package

ADAPTERS = "rules/imports/adapters"
TOOLS = "rules/imports/tools"
UNREADABLE, ADAPTER_FAILED = "UNREADABLE", "ADAPTER_FAILED"
"""Classes of tasks that are left out before anything of them runs."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_.+=-]")
_LONGEST_PART = 100

Describe = Callable[[Checkout, str], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Listed:
    """One task that a checkout has.

    Attributes:
        name: its package below the repository.
        files: the main one first.
        tags: the target's tags.
        absent: why it is left out, if that is known already.
    """

    name: str
    files: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    absent: LeftOut | None = None


@dataclass(frozen=True)
class Adapter:
    """One adapter.

    Attributes:
        source: its module.
        terms: the benchmark's licence.
        mark: a file or directory that a checkout of the benchmark has.
        patterns: of the files that stand for a task each.
        digest: of its text and of the tools that it uses.
        file: its path on this machine.
    """

    name: str
    source: Source
    terms: Terms
    mark: str
    patterns: tuple[str, ...]
    digest: str
    file: Path
    _describe: Describe = field(repr=False)

    def tasks(self, root: Path) -> tuple[Listed, ...]:
        """The tasks of the checkout at ``root``, under distinct names.

        A task at which the adapter fails is left out. Raises UsageError if ``root`` is not such a
        checkout or has no tasks, LoadError if the adapter fails at all of it.
        """
        checkout = Checkout(root)
        if not checkout.has(self.mark):
            raise UsageError(
                Reason.BAD_FLAG,
                f"{root} is not a checkout of {self.name}: it has no {self.mark}",
                hint="give the directory that git cloned",
            )
        try:
            found = [p for pattern in self.patterns for p in _ordered(checkout.find(pattern))]
        except Exception as error:
            raise _broken(self.file, f"the adapter fails: {described(error)}") from error
        paths = dict.fromkeys(found)
        listed = {path: task for path in paths if (task := self._listed(checkout, path))}
        if not listed:
            raise UsageError(
                Reason.BAD_FLAG,
                f"{root} has no tasks of {self.name}: no file matches {' or '.join(self.patterns)}",
                hint="give a complete checkout",
            )
        names = distinct({path: task.name for path, task in listed.items()})
        return tuple(
            Listed(names[path], task.files, task.tags, task.absent) for path, task in listed.items()
        )

    def _listed(self, checkout: Checkout, path: str) -> Listed | None:
        """What the adapter says of one task; None if the file is none of one."""
        try:
            path.encode()
            told = self._describe(checkout, path)
            if told is None:
                return None
            files, tags = _texts(told["files"]), _texts(told["tags"])
            "".join((*files, *tags)).encode()
            if not files:
                raise TypeError("a task without files")
            return Listed(_text(told["name"]), files, tags)
        except UnicodeEncodeError:
            absent = left_out(UNREADABLE, "the name of a file of it is not UTF-8")
        except OSError as error:
            absent = left_out(UNREADABLE, unreadable(error))
        except Exception as error:  # noqa: BLE001 - an adapter's reading of foreign files
            absent = left_out(ADAPTER_FAILED, f"the adapter fails at {path}: {described(error)}")
        return Listed(path, absent=absent)


def unreadable(error: OSError) -> str:
    """A sentence about a file of a checkout that cannot be read."""
    return f"{error.filename} cannot be read: {error.strerror or error}"


def find_adapter(workspace: Path, name: str) -> Adapter:
    """The adapter ``name``: the workspace's own, or the one that ships.

    Raises UsageError if there is none, LoadError if its module is wrong.
    """
    homes: dict[str, tuple[str, Path]] = {}
    for root, base in (("builtin", builtin_root()), ("workspace", workspace)):
        for path in sorted((base / ADAPTERS).glob("*.py")):
            homes[path.stem] = (root, path)
    if name not in homes or not ADAPTER_NAME.fullmatch(name):
        hint = suggest(name, homes) or f"adapters: {', '.join(sorted(homes))}"
        raise UsageError(Reason.BAD_FLAG, f"no adapter '{name}'", hint=hint)
    root, path = homes[name]
    if workspace == builtin_root():
        root = "workspace"
    module = _load(path)
    try:
        return Adapter(
            name,
            Source(f"{ADAPTERS}/{path.name}", root),
            Terms(**module["TERMS"]),
            _text(module["MARK"]),
            _texts(module["TASKS"]),
            _digest(path),
            path,
            module["task"],
        )
    except (KeyError, TypeError) as error:
        raise _broken(path, f"the adapter is incomplete: {described(error)}") from None


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts. Raises TypeError for anything else."""
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise TypeError(f"a list of strings is expected, not {value!r}")
    return tuple(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a string is expected, not {value!r}")
    return value


def _ordered(paths: list[str]) -> list[str]:
    """By directory, then by the number that a name begins with."""

    def place(path: str) -> tuple[list[str], int, str]:
        *home, name = path.split("/")
        found = re.match(r"[0-9]{1,18}", name)
        return home, int(found[0]) if found else 0, name

    return sorted(paths, key=place)


def _load(path: Path) -> Mapping[str, Any]:
    name = f"kabuild_adapter_{path.stem}"
    loader = ExactLoader(name, str(path))
    specification = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    try:
        loader.exec_module(module)
    except Exception as error:
        raise _broken(path, f"the adapter fails: {described(error)}") from error
    return vars(module)


def _broken(path: Path, what: str) -> LoadError:
    return LoadError(Reason.BAD_RULE, what, position=Position(str(path)))


def _digest(path: Path) -> str:
    tools = sorted((builtin_root() / TOOLS).rglob("*.py"))
    total = hashlib.sha256()
    for file in (path, *tools):
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """A valid name for each task, by the path that stands for it.

    A name that is valid stays, at its first task. Otherwise characters are replaced; where that is
    another task's name, a digest of the path follows.
    """
    taken: dict[str, str] = {}
    for path, name in names.items():
        if names_package(name) and name:
            taken.setdefault(name, path)
    found = {path: name for name, path in taken.items()}
    for path, name in names.items():
        if path not in found:
            valid = _valid(name)
            known = valid in taken or not names_package(valid)
            found[path] = _numbered(valid, path, taken) if known else valid
            taken[found[path]] = path
    return found


def _valid(name: str) -> str:
    parts = [_FOREIGN.sub("_", part)[:_LONGEST_PART] for part in name.split("/")]
    return "/".join(part if names_package(part) and part else f"_{part}" for part in parts)


def _numbered(name: str, path: str, taken: Mapping[str, str]) -> str:
    """The name with as much of the digest of ``path`` as makes it a new one."""
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()
    short = name if names_package(f"{name}-{digest}") else "task"
    return next(text for end in range(8, 65) if (text := f"{short}-{digest[:end]}") not in taken)
