"""What the last builds came to, so that a build of nothing new is a few thousand ``stat``.

One file per request. It is made of packages: what each was read from, and the rows of its
tasks that passed. A package that looks as it did, among shared files that do, needs neither
loading nor analysis; the others are built as ever. Lost, damaged or outdated, a memory costs
time and nothing else.

Beside it a second file names the results that the answer rests on. Answering does not look at
it; who collects what nobody uses does.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.fs import atomic_write
from kabuild.store.eviction import TOUCH_AFTER
from kabuild.store.faults import writing
from kabuild.store.witness import Entry, unchanged

_MAGIC = b"kabuild memory 1 "
_KEPT = 64
_RESULTS = ".results"
"""Requests that are remembered; beyond, those that were asked longest ago are forgotten."""


@dataclass(frozen=True)
class Remembered:
    """One task that passed all gates it was asked for."""

    label: str
    gates: tuple[str, ...]
    speedup: float | None
    score: float | None


@dataclass(frozen=True)
class PackageMemory:
    """One package: what it looked like, whose actions it used, and what its tasks came to.

    ``actions`` counts the package's own actions.
    """

    seen: list[Entry] = field(hash=False)
    needs: tuple[str, ...]
    tasks: tuple[Remembered, ...]
    actions: int


@dataclass(frozen=True)
class Memory:
    """A build: what all of it depended on, and its packages.

    Attributes:
        asked_platform: the platform's name, by flag or by WORKSPACE.toml.
        platform: what the machine had of it, as text.
        shared: what everything depends on; any change there voids the memory.
        actions: how many actions belong to no package with tasks.
        packages: by path, those whose tasks passed.
        others: the paths of those that have to be built every time.
    """

    asked_platform: str
    platform: str
    shared: list[Entry] = field(hash=False)
    actions: int
    packages: Mapping[str, PackageMemory] = field(hash=False)
    others: tuple[str, ...]

    def holds(self) -> bool:
        """Whether nothing changed of what everything depends on."""
        return unchanged(self.shared)

    def clean(self) -> frozenset[str]:
        """The packages that neither changed nor need one that did."""
        dirty = {name for name, package in self.packages.items() if not unchanged(package.seen)}
        clean = self.packages.keys() - dirty
        while unfounded := {n for n in clean if not clean.issuperset(self.packages[n].needs)}:
            clean -= unfounded
        return frozenset(clean)


class MemoryStore:
    """Memories by request, in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, request: str) -> Memory | None:
        """The memory of a request; None where there is none that can be used."""
        try:
            head, _, body = self._path(request).read_bytes().partition(b"\n")
            if head != _MAGIC + str(zlib.crc32(body)).encode():
                return None
            return _from_json(json.loads(body))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(
        self, request: str, memory: Memory, results: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Remember a build. Raises StoreError.

        ``results`` has the hashes of the keys that it used, by package, ``""`` for all that
        is in none of them; packages that it lacks keep those that are known.
        """
        body = json.dumps(_to_json(memory), separators=(",", ":")).encode()
        kept = {
            name: keys for name, keys in self._results(request).items() if name in memory.packages
        }
        names = json.dumps({**kept, **(results or {})}, separators=(",", ":")).encode()
        with writing(str(self._directory)):
            atomic_write(self._path(request, _RESULTS), names)
            atomic_write(
                self._path(request), _MAGIC + str(zlib.crc32(body)).encode() + b"\n" + body
            )
        self._forget_old()

    def note_use(self, request: str) -> None:
        """Say that the answer is used now, for whoever collects what nobody uses."""
        path = self._path(request)
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > TOUCH_AFTER:
                os.utime(path)

    def uses(self) -> dict[str, float]:
        """When results were used last by remembered answers, by the hash of their key."""
        found: dict[str, float] = {}
        for request in self._requests():
            used = _modified(self._path(request))
            for names in self._results(request).values():
                for name in names:
                    found[name] = max(used, found.get(name, 0.0))
        return found

    def packages(self) -> dict[str, str]:
        """The package that a remembered result is of, by the hash of its key."""
        return {
            name: package
            for request in self._requests()
            for package, names in self._results(request).items()
            for name in names
        }

    def forget(self) -> None:
        """Forget everything: for whoever removes results from the store."""
        for path in self._files():
            with contextlib.suppress(OSError):
                path.unlink()

    def _forget_old(self) -> None:
        requests = self._requests()
        if len(requests) > _KEPT:
            for request in sorted(requests, key=lambda name: _modified(self._path(name)))[:-_KEPT]:
                for path in (self._path(request), self._path(request, _RESULTS)):
                    with contextlib.suppress(OSError):
                        path.unlink()

    def _requests(self) -> list[str]:
        return [path.stem for path in self._files() if path.suffix == ".json"]

    def _results(self, request: str) -> dict[str, list[str]]:
        """The hashes of a request's keys by package; none where that is not known."""
        try:
            names = json.loads(self._path(request, _RESULTS).read_bytes())
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


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _to_json(memory: Memory) -> dict[str, Any]:
    return {
        "platform": [memory.asked_platform, memory.platform],
        "shared": memory.shared,
        "actions": memory.actions,
        "others": memory.others,
        "packages": {
            name: [
                package.seen,
                package.needs,
                [[task.label, task.gates, task.speedup, task.score] for task in package.tasks],
                package.actions,
            ]
            for name, package in memory.packages.items()
        },
    }


def _from_json(data: dict[str, Any]) -> Memory:
    packages = {
        name: PackageMemory(
            seen=seen,
            needs=tuple(needs),
            tasks=tuple(
                Remembered(label, tuple(gates), speedup, score)
                for label, gates, speedup, score in tasks
            ),
            actions=actions,
        )
        for name, (seen, needs, tasks, actions) in data["packages"].items()
    }
    asked, platform = data["platform"]
    shared, actions, others = data["shared"], data["actions"], tuple(data["others"])
    return Memory(asked, platform, shared, actions, packages, others)
