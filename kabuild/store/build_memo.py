"""Memories of the last builds, so that a null build costs a few thousand ``stat`` calls.

One file per request. It is made of packages: what each was read from, and the rows of its tasks
that passed. A package that looks as it did, among shared files that do, needs neither loading nor
analysis; the others are built as ever. A memory that is lost, damaged, outdated or not sealed by
this user costs only time.

Beside it a second file names the results behind the answer, for the garbage collector.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import bounded_json, read_json
from kabuild.base.errors import UsageError
from kabuild.base.own_files import write_own
from kabuild.base.reading import read_plain
from kabuild.base.seal import Seal
from kabuild.model.gate import Gate, Role, When
from kabuild.model.task_result import TaskResult
from kabuild.store.eviction import TOUCH_AFTER
from kabuild.store.faults import writing
from kabuild.store.stat_snapshot import Entry, unchanged

KIND = "memory"
_KEPT = 64
_RESULTS = ".results"
"""The number of remembered requests; the oldest ones are forgotten."""


@dataclass(frozen=True)
class PackageMemo:
    """One package: its files' status, the packages that it needs, and the results of its tasks.

    ``actions`` counts the package's own actions.
    """

    seen: list[Entry] = field(hash=False)
    needs: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    actions: int


@dataclass(frozen=True)
class BuildMemo:
    """A build: its shared dependencies, and its packages.

    Attributes:
        asked_platform: the platform's name, by flag or by WORKSPACE.toml.
        platform: the machine's platform, as text.
        shared: shared dependencies; any change there invalidates the memory.
        actions: how many actions belong to no package with tasks.
        packages: by path, those whose tasks passed.
        others: the paths of packages that have to be built every time.
    """

    asked_platform: str
    platform: str
    shared: list[Entry] = field(hash=False)
    actions: int
    packages: Mapping[str, PackageMemo] = field(hash=False)
    others: tuple[str, ...]

    def holds(self) -> bool:
        """Whether the shared dependencies are unchanged."""
        return unchanged(self.shared)

    def clean(self) -> frozenset[str]:
        """The packages that neither changed nor depend on a changed one."""
        dirty = {name for name, package in self.packages.items() if not unchanged(package.seen)}
        clean = self.packages.keys() - dirty
        while unfounded := {n for n in clean if not clean.issuperset(self.packages[n].needs)}:
            clean -= unfounded
        return frozenset(clean)


class MemoTable:
    """The files of memories by request, in one directory, for the garbage collector."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def note_use(self, request: str) -> None:
        """Note a use of the answer, for the garbage collector."""
        path = self._path(request)
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > TOUCH_AFTER:
                os.utime(path)

    def uses(self) -> dict[str, float]:
        """By the hash of a key, the last use of the result by a remembered answer."""
        found: dict[str, float] = {}
        for request in self._requests():
            used = _modified(self._path(request))
            for names in self._results(request).values():
                for name in names:
                    found[name] = max(used, found.get(name, 0.0))
        return found

    def packages(self) -> dict[str, str]:
        """By the hash of a key, the package of the remembered result."""
        return {
            name: package
            for request in self._requests()
            for package, names in self._results(request).items()
            for name in names
        }

    def forget(self) -> None:
        """Forget everything; to be called before results are removed from the store."""
        for path in self._files():
            with contextlib.suppress(OSError):
                path.unlink()

    def _requests(self) -> list[str]:
        return [path.stem for path in self._files() if path.suffix == ".json"]

    def _results(self, request: str) -> dict[str, list[str]]:
        """The hashes of a request's keys by package; empty if unknown."""
        try:
            names = bounded_json(read_plain(self._path(request, _RESULTS)))
            return {str(package): [str(name) for name in keys] for package, keys in names.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _files(self) -> list[Path]:
        try:
            return [self._directory / name for name in os.listdir(self._directory)]  # noqa: PTH208
        except OSError:
            return []

    def _path(self, request: str, suffix: str = ".json") -> Path:
        return self._directory / f"{request}{suffix}"


class BuildMemos(MemoTable):
    """A MemoTable that can be read and written, with this user's seal."""

    def __init__(self, directory: Path, seal: Seal) -> None:
        super().__init__(directory)
        self._seal = seal

    def read(self, request: str) -> BuildMemo | None:
        """The remembered answer to a request; None if none can be used."""
        try:
            body = self._seal.unwrap(KIND, request, read_plain(self._path(request)))
            return _from_json(read_json(body))
        except (OSError, ValueError, TypeError, KeyError, UsageError):
            return None

    def write(
        self, request: str, memory: BuildMemo, results: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Remember a build. Raises StoreError.

        ``results`` has the hashes of the used keys by package, ``""`` for those outside packages;
        absent packages keep their known ones.
        """
        if self._seal.problem:  # never over what the user's key sealed
            return
        body = json.dumps(_to_json(memory), separators=(",", ":")).encode()
        kept = {
            name: keys for name, keys in self._results(request).items() if name in memory.packages
        }
        names = json.dumps({**kept, **(results or {})}, separators=(",", ":")).encode()
        with writing(str(self._directory.parent)):
            write_own(self._path(request, _RESULTS), names)
            write_own(self._path(request), self._seal.wrap(KIND, request, body))
        self._forget_old()

    def _forget_old(self) -> None:
        requests = self._requests()
        if len(requests) > _KEPT:
            for request in sorted(requests, key=lambda name: _modified(self._path(name)))[:-_KEPT]:
                for path in (self._path(request), self._path(request, _RESULTS)):
                    with contextlib.suppress(OSError):
                        path.unlink()


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _to_json(memory: BuildMemo) -> dict[str, Any]:
    gates = {name: _gates(package) for name, package in memory.packages.items()}
    declared = list(dict.fromkeys(gate for found in gates.values() for gate in found))
    places = {gate: place for place, gate in enumerate(declared)}
    return {
        "gates": [[g.name, g.when, g.role, g.share, g.watched] for g in declared],
        "platform": [memory.asked_platform, memory.platform],
        "shared": memory.shared,
        "actions": memory.actions,
        "others": memory.others,
        "packages": {
            name: [
                package.seen,
                package.needs,
                [task.to_json() for task in package.tasks],
                package.actions,
                [places[gate] for gate in gates[name]],
            ]
            for name, package in memory.packages.items()
        },
    }


def _gates(package: PackageMemo) -> tuple[Gate, ...]:
    """The gates of its tasks, from one rule or from several that agree on names."""
    found = (gate.declared for task in package.tasks for gate in task.gates.values())
    return tuple(dict.fromkeys(found))


def _from_json(data: dict[str, Any]) -> BuildMemo:
    declared = [
        Gate(name, When(when), Role(role), share, watched)
        for name, when, role, share, watched in data["gates"]
    ]
    packages = {
        name: PackageMemo(
            seen=seen,
            needs=tuple(needs),
            tasks=_tasks(tasks, [declared[place] for place in gates]),
            actions=actions,
        )
        for name, (seen, needs, tasks, actions, gates) in data["packages"].items()
    }
    asked, platform = data["platform"]
    shared, actions, others = data["shared"], data["actions"], tuple(data["others"])
    return BuildMemo(asked, platform, shared, actions, packages, others)


def _tasks(values: Sequence[Mapping[str, Any]], gates: Sequence[Gate]) -> tuple[TaskResult, ...]:
    named = {gate.name: gate for gate in gates}
    return tuple(TaskResult.from_json(value, named) for value in values)
