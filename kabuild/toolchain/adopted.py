"""Installed trees that are adopted by content: found, fingerprinted, compared with a lock."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import DriftError, Position, Reason, ToolchainError
from kabuild.base.fs import atomic_write
from kabuild.base.reading import read_plain
from kabuild.model.digest import Digest
from kabuild.toolchain.aliases import with_aliases
from kabuild.toolchain.completeness import require_whole
from kabuild.toolchain.declaration import Declaration, Fetched, LocalTree
from kabuild.toolchain.fingerprint import FileDigest, tree_fingerprint, tree_listing
from kabuild.toolchain.installed import Found
from kabuild.toolchain.tree_store import compare, few


def find_tree(declaration: Declaration, pin: LocalTree, file_digest: FileDigest) -> Found:
    """An installed directory; its home is the path without links.

    Raises ToolchainError(NO_TOOLCHAIN).
    """
    home = Path(os.path.realpath(pin.home))
    listing = list_tree(declaration, pin, file_digest)
    require_whole(declaration, home, pin.paths)
    return tree_fingerprint(listing), str(home), with_aliases(pin.home)


def list_tree(
    declaration: Declaration,
    pin: LocalTree,
    file_digest: FileDigest,
    position: Position | None = None,
) -> bytes:
    """The listing of an installed directory, with digests.

    Raises ToolchainError at ``position``, by default that of the declaration.
    """
    home, label = Path(os.path.realpath(pin.home)), declaration.label.short
    absent = [path for path in ("", *pin.paths) if not os.path.lexists(home / path)]
    if absent or not home.is_dir():
        why = "does not exist" if absent else "is not a directory"
        back = isinstance(declaration.pin, Fetched)
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            f"{label} is not on this machine: {Path(pin.home, *absent[:1])} {why}",
            position=position or declaration.position,
            hint=f"kabuild toolchain pin {label} --from DIRECTORY"
            + f"\nor fetch the declared one: kabuild toolchain lock {label}" * back,
        )
    try:
        return tree_listing(home, pin.paths, file_digest)
    except OSError as error:
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            f"{label} cannot be read: {error.filename}: {error.strerror}",
            position=position or declaration.position,
            hint="fix that, or pin only parts of the tree with --path or paths",
        ) from error


def remember_listing(directory: Path, listing: bytes) -> str:
    """Keep a listing, so that later differences can be named; returns its digest.

    Raises ``OSError``.
    """
    digest = Digest.of(listing).hash
    path = directory / f"{digest}.json"
    if not path.is_file():
        atomic_write(path, listing)
    return digest


def drift(
    declaration: Declaration, position: Position, listing: bytes, known: Path, pin: LocalTree
) -> DriftError:
    """The error for a tree that differs from its pin, with the changed files.

    ``known`` is the file with the pinned listing, named by its digest; without it, no files can be
    named.
    """
    lines: list[str] = []
    with suppress(OSError, ValueError):
        pinned = read_plain(known)
        if Digest.of(pinned).hash == known.stem:
            lines = compare(_by_path(pinned), _by_path(listing))
    named = few(lines) or ["the changed files are unknown: the tree was pinned on another machine"]
    again = ["kabuild", "toolchain", "pin", declaration.label.short, "--from", pin.home]
    again += [word for path in pin.paths for word in ("--path", path)]
    named.append(f"to accept it: {shlex.join(again)}")
    return DriftError(
        Reason.TOOLCHAIN_DRIFT,
        f"{declaration.label.short} differs from its pin: {pin.home} changed",
        position=position,
        hint="\n".join(named),
    )


def _by_path(listing: bytes) -> dict[str, list[str]]:
    return {path: entry for path, *entry in read_json(listing)}
