"""Fingerprints: the identity of a toolchain as canonical JSON, independent of its place."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.canonical import canonical_json
from kabuild.model.digest import Digest
from kabuild.toolchain.distributions import InstalledDistribution
from kabuild.toolchain.parts import is_in, with_targets

FileDigest = Callable[[Path], Digest]
SCHEMA = 1
_INSTALLERS_FILES = (b"INSTALLER,", b"REQUESTED,", b"RECORD,", b"direct_url.json,")


def hash_file(path: Path) -> Digest:
    """The digest of a file, read in full. Raises ``OSError``."""
    import hashlib

    with path.open("rb") as file:
        hash_ = hashlib.file_digest(file, "sha256").hexdigest()
        return Digest(hash_, file.tell())


def hash_record(path: Path) -> Digest:
    """The digest of an installed distribution's RECORD, restricted to the wheel's own files.

    Files that an installer adds are left out: scripts, which contain the environment's path, byte
    code, and notes about the installation. So two environments with one wheel agree. Raises
    ``OSError``.
    """
    lines = path.read_bytes().splitlines()
    own = [line for line in lines if b",sha256=" in line and not _is_installers(line)]
    return Digest.of(b"\n".join(sorted(own)))


def is_of_wheel(name: str) -> bool:
    """Whether a file in a RECORD is the wheel's own, as in ``hash_record``."""
    return not _is_installers(f"{name},".encode(errors="surrogateescape"))


def _is_installers(line: bytes) -> bool:
    name, slash, rest = line.partition(b"/")
    if name == b"..":
        return True
    return bool(slash) and name.endswith(b".dist-info") and rest.startswith(_INSTALLERS_FILES)


def environment_fingerprint(
    distributions: Sequence[InstalledDistribution], record_digest: FileDigest
) -> bytes:
    """The running interpreter with some of its distributions."""
    version = sys.version_info
    return canonical_json(
        {
            "schema": SCHEMA,
            "kind": "environment",
            "python": f"{version.major}.{version.minor}.{version.micro}",
            "implementation": sys.implementation.cache_tag or sys.implementation.name,
            "platform": f"{sys.platform}-{os.uname().machine}",
            "libc": _libc_version(),
            "distributions": [_distribution(item, record_digest) for item in distributions],
        }
    )


def distribution_fingerprint(
    distribution: InstalledDistribution, record_digest: FileDigest
) -> bytes:
    """One installed distribution, with the machine, since wheels hold machine code."""
    return canonical_json(
        {
            "schema": SCHEMA,
            "kind": "distribution",
            "platform": f"{sys.platform}-{os.uname().machine}",
            **_distribution(distribution, record_digest),
        }
    )


def tree_listing(home: Path, paths: Sequence[str], file_digest: FileDigest) -> bytes:
    """The content of a directory's parts: paths, digests, executable bits, targets of links.

    Links within the directory are listed with their targets. As canonical JSON, ``[[path, kind,
    digest or target], ...]``, sorted. Raises ``OSError``.
    """
    entries: dict[str, list[str]] = {}
    listed: list[str] = []
    pending = with_targets(home, paths) or [""]
    while pending:
        part = pending.pop()
        if any(is_in(part, known) for known in listed):
            continue
        listed.append(part)
        found = dict(_entries(home, part, file_digest))
        entries.update(found)
        if part:  # the root contains all targets of its links
            pending += with_targets(home, [path for path in found if found[path][0] == "link"])
    return canonical_json([[path, *entry] for path, entry in sorted(entries.items())])


def tree_fingerprint(listing: bytes) -> bytes:
    """The fingerprint of a directory with that ``tree_listing``."""
    return canonical_json(
        {
            "schema": SCHEMA,
            "kind": "local",
            "files": len(read_json(listing)),
            "tree": Digest.of(listing).hash,
        }
    )


def _distribution(distribution: InstalledDistribution, record_digest: FileDigest) -> dict[str, Any]:
    return {
        "name": distribution.name,
        "version": distribution.version,
        "record": record_digest(distribution.record).hash,
    }


def _libc_version() -> str:
    """Such as ``glibc 2.36``; empty if unknown."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


def _entries(home: Path, path: str, file_digest: FileDigest) -> Iterator[tuple[str, list[str]]]:
    full = home / path
    _require_text(full, path)
    mode = full.lstat().st_mode
    if stat.S_ISLNK(mode):
        target = str(full.readlink())
        _require_text(full, target)
        yield path, ["link", target]
    elif stat.S_ISDIR(mode):
        for entry in sorted(full.iterdir()):
            yield from _entries(home, entry.relative_to(home).as_posix(), file_digest)
    elif stat.S_ISREG(mode):
        # By its mode, not by this user's permissions.
        yield path, ["executable" if mode & 0o111 else "file", file_digest(full).hash]
    else:
        raise OSError(errno.EINVAL, "it is neither file, directory nor link", os.fspath(full))


def _require_text(full: Path, name: str) -> None:
    """Raise ``OSError`` for a file name that is not valid UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise OSError(errno.EILSEQ, "its name is not UTF-8", ascii(os.fspath(full))) from None
