"""Adapters: the modules that know how a benchmark lays out its tasks."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.bytecode import ExactLoader
from kabuild.base.errors import LoadError, Position, Reason, UsageError, described
from kabuild.base.suggest import suggest
from kabuild.loading import builtin_root
from kabuild.loading.import_lock import Terms
from kabuild.loading.repository import ADAPTER_NAME
from kabuild.model.action import Source

ADAPTERS = "rules/imports/adapters"
TOOLS = "rules/imports/tools"


@dataclass(frozen=True)
class Listed:
    """One task that a checkout has: its name, its files with the main one first, its tags."""

    name: str
    files: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Adapter:
    """One adapter.

    Attributes:
        source: its module.
        terms: the benchmark's licence.
        mark: a file or directory that a checkout of the benchmark has.
        digest: of its text and of the tools that it uses.
    """

    name: str
    source: Source
    terms: Terms
    mark: str
    digest: str
    _tasks: Callable[[Path], Iterable[Mapping[str, Any]]] = field(repr=False)

    def tasks(self, root: Path) -> tuple[Listed, ...]:
        """The tasks of the checkout at ``root``. Raises UsageError if it is not one."""
        if not (root / self.mark).exists():
            raise UsageError(
                Reason.BAD_FLAG,
                f"{root} is not a checkout of {self.name}: it has no {self.mark}",
                hint="give the directory that git cloned",
            )
        found = (Listed(t["name"], tuple(t["files"]), tuple(t["tags"])) for t in self._tasks(root))
        return tuple(found)


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
        terms = Terms(**module["TERMS"])
        return Adapter(
            name,
            Source(f"{ADAPTERS}/{path.name}", root),
            terms,
            module["MARK"],
            _digest(path),
            module["tasks"],
        )
    except (KeyError, TypeError) as error:
        what = f"the adapter is incomplete: {described(error)}"
        raise LoadError(Reason.BAD_RULE, what, position=Position(str(path))) from None


def _load(path: Path) -> Mapping[str, Any]:
    name = f"kabuild_adapter_{path.stem}"
    loader = ExactLoader(name, str(path))
    specification = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    try:
        loader.exec_module(module)
    except Exception as error:
        what = f"the adapter fails: {described(error)}"
        raise LoadError(Reason.BAD_RULE, what, position=Position(str(path))) from error
    return vars(module)


def _digest(path: Path) -> str:
    tools = sorted((builtin_root() / TOOLS).rglob("*.py"))
    total = hashlib.sha256()
    for file in (path, *tools):
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()
