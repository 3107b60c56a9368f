"""Whether an unpacked tree is unchanged: a ``stat`` per file, without reading.

An intact file is recognised by its status. A file with a new status is read and compared with the
manifest. Like the file index, this trusts a status only if the file was not modified shortly before
it was read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import DriftError, Position, Reason, ToolchainError
from kabuild.base.own_files import write_own
from kabuild.base.reading import read_plain
from kabuild.toolchain.declaration import Declaration
from kabuild.toolchain.fingerprint import FileDigest, hash_file
from kabuild.toolchain.tree_store import Files, TreeStore, compare, describe, few

KIND = "toolchain status"
SEEN = "seen.json"
"""The sealed file beside a tree with the status of each intact file, by path."""

QUIET_NS = 2_000_000_000
"""Nanoseconds: the coarsest tick of common file systems, as in the file index."""

Consulted = Callable[[str | Path], None]
Look = list[int]
"""A status in five numbers: modification, change, size, inode, mode."""


def nobody(_: str | Path) -> None:
    """Ignores the files that an answer depends on."""


@dataclass(frozen=True)
class TreeCheck:
    """Finds files of a stored tree that changed after unpacking.

    Attributes:
        consulted: called with each file and directory that was checked.
        read: the digest of a file with a new status.
        now_ns: the time of day.
    """

    trees: TreeStore
    consulted: Consulted = nobody
    read: FileDigest = hash_file
    now_ns: Callable[[], int] = time.time_ns

    def differences(self, digest: str) -> list[str]:
        """A line for each changed file, such as ``bin/nvcc: changed``.

        Raises ``OSError`` and ``ValueError`` if the tree or its manifest cannot be read.
        """
        began = self.now_ns()
        found = self._look(str(self.trees.tree(digest)))
        seen = self.trees.root / digest / SEEN
        known = self._known(digest, seen)
        if known == found:
            return []
        wanted = self.trees.files(digest)
        whole = {path for path, look in found.items() if known.get(path) == look}
        lines = compare(wanted, self._read_again(digest, wanted, found.keys(), whole))
        if not lines and not self.trees.seal.problem:
            quiet = {path: look for path, look in found.items() if _is_quiet(look, began)}
            with suppress(OSError):  # without it, all files are read again
                body = json.dumps(quiet, separators=(",", ":")).encode()
                write_own(seen, self.trees.seal.wrap(KIND, digest, body))
        return lines

    def require(self, declaration: Declaration, position: Position, digest: str) -> None:
        """Raise DriftError with the changed files, if any.

        Raises ToolchainError(NO_TOOLCHAIN) if the tree cannot be checked.
        """
        label = declaration.label.short
        again = f"to get it again: kabuild toolchain fetch --force {label}"
        try:
            lines = self.differences(digest)
        except (OSError, ValueError) as error:
            raise ToolchainError(
                Reason.NO_TOOLCHAIN,
                f"{label} cannot be read: {error}",
                position=declaration.position,
                hint=again,
            ) from error
        if lines:
            raise DriftError(
                Reason.TOOLCHAIN_DRIFT,
                f"{label} differs from its download: {self.trees.tree(digest)} changed",
                position=position,
                hint="\n".join([*few(lines), again]),
            )

    def _known(self, digest: str, seen: Path) -> dict[str, Look]:
        try:
            known = read_json(self.trees.seal.unwrap(KIND, digest, read_plain(seen)))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    def _look(self, tree: str) -> dict[str, Look]:
        """The status of every file and link of a tree. Raises ``OSError``."""
        found: dict[str, Look] = {}
        cut = len(tree) + 1
        consulted = self.consulted
        pending = [tree]
        while pending:
            directory = pending.pop()
            consulted(directory)
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    consulted(entry.path)
                    status = entry.stat(follow_symlinks=False)
                    found[entry.path[cut:]] = [
                        status.st_mtime_ns,
                        status.st_ctime_ns,
                        status.st_size,
                        status.st_ino,
                        status.st_mode,
                    ]
        return found

    def _read_again(
        self, digest: str, wanted: Files, found: Iterable[str], whole: Collection[str]
    ) -> Files:
        """The current files in a manifest's form; ``whole`` ones are not read."""
        tree = self.trees.tree(digest)
        return {
            path: wanted[path] if path in whole and path in wanted else describe(file, self.read)
            for path, file in ((path, tree / path) for path in found)
        }


def _is_quiet(look: Look, began_ns: int) -> bool:
    return began_ns - max(look[0], look[1]) > QUIET_NS
