"""What the last builds came to, so that a build of nothing new is a few thousand ``stat``.

One file per request. It is made of packages: what each was read from, and the rows of its
tasks that passed. A package that looks as it did, among shared files that do, needs neither
loading nor analysis; the others are built as ever. Lost, damaged or outdated, a memory costs
time and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.fs import atomic_write
from kabuild.store.faults import writing
from kabuild.store.witness import Entry, unchanged

_MAGIC = b"kabuild memory 1 "
_KEPT = 64
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

    def write(self, request: str, memory: Memory) -> None:
        """Remember a build. Raises StoreError."""
        body = json.dumps(_to_json(memory), separators=(",", ":")).encode()
        with writing(str(self._directory)):
            atomic_write(
                self._path(request), _MAGIC + str(zlib.crc32(body)).encode() + b"\n" + body
            )
        self._forget_old()

    def forget(self) -> None:
        """Forget everything: for whoever removes results from the store."""
        for path in self._files():
            with contextlib.suppress(OSError):
                path.unlink()

    def _forget_old(self) -> None:
        files = self._files()
        if len(files) > _KEPT:
            for path in sorted(files, key=_modified)[:-_KEPT]:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _files(self) -> list[Path]:
        try:
            return [self._directory / name for name in os.listdir(self._directory)]  # noqa: PTH208
        except OSError:
            return []

    def _path(self, request: str) -> Path:
        return self._directory / f"{request}.json"


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
