"""Writes entries as files below one directory, and nowhere else."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from kabuild.toolchain.declaration import Layout
from kabuild.toolchain.unpack.entry import Entry, Kind, bad_archive

MAX_BYTES = 32 << 30
MAX_RATIO = 200
"""The most that a tree may be larger than its archive; measured: 3 to 10, headers up to 30."""

ALLOWANCE = 64 << 20
"""Bytes that any archive may unpack to, since a small one may hold a long run of zeros."""

MAX_ENTRIES = 1_000_000
TIME = 315532800
"""The mtime of all files: 1980-01-01 in seconds, so that equal trees have equal times."""

_CHUNK = 1 << 20
_SPECIAL = 0o6000


@dataclass
class TreeWriter:
    """Writes what ``layout`` keeps of several archives into one directory.

    Every path, kept or not, must stay below the root; devices, setuid files and excessive unpacked
    sizes are refused; links are made last, so that nothing is written through one. Two archives may
    hold the same path if the content is equal.

    Attributes:
        root: an empty directory.
        packed: bytes of all archives together.
        files: what was written: path -> [kind, SHA-256 or target, bytes].
    """

    root: Path
    layout: Layout
    packed: int
    files: dict[str, list[str | int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bytes: int = 0
    _entries: int = 0
    _links: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, entry: Entry, archive: str) -> None:
        """Write one entry of ``archive``, if it is kept. Raises DriftError(BAD_ARCHIVE)."""
        self._check(entry, archive)
        path = self.layout.kept(entry.path)
        if not path:
            return
        if entry.kind is Kind.DIRECTORY:
            self._directory(path, archive)
        elif entry.kind is Kind.SYMLINK:
            self._link(path, entry.target, archive)
        elif entry.kind is Kind.HARDLINK:
            source = self.layout.kept(entry.target)
            if not source or source not in self.files:
                raise bad_archive(archive, f"links {entry.path} to {entry.target}, not kept")
            with (self.root / source).open("rb") as content:
                executable = self.files[source][0] == "executable"
                self._file(path, content, archive, executable=executable)
        elif entry.open:
            with entry.open() as content:
                self._file(path, content, archive, executable=bool(entry.mode & 0o111))

    def finish(self, name: str) -> None:
        """Make the links and all files read-only. ``name`` is the toolchain's, for messages."""
        for path, target in self.layout.links.items():
            self._link(path, target, name)
        for path, (target, archive) in sorted(self._links.items()):
            self._make_link(path, target, archive)
        root = os.path.realpath(self.root)
        for path, (target, archive) in self._links.items():
            real = os.path.realpath(self.root / path)
            if real != root and not real.startswith(f"{root}/"):
                raise bad_archive(archive, f"links '{path}' to {target}, outside of its tree")
            self.files[path] = ["link", target, 0]
        self._check_parts(name)
        for directory, _, names in os.walk(self.root, topdown=False):
            for file in names:
                os.utime(f"{directory}/{file}", (TIME, TIME), follow_symlinks=False)
            os.utime(directory, (TIME, TIME))
            Path(directory).chmod(0o555)

    def _make_link(self, path: str, target: str, archive: str) -> None:
        """Create a link whose path contains no other link."""
        parents = path.split("/")[:-1]
        above = ["/".join(parents[: count + 1]) for count in range(len(parents))]
        if os.path.lexists(self.root / path) or any(parent in self._links for parent in above):
            raise bad_archive(archive, f"holds '{path}' as a link and as something else")
        if above:
            self._directory(above[-1], archive)
        (self.root / path).symlink_to(target)

    def _check_parts(self, name: str) -> None:
        """Check that everything in the layout exists."""
        if not self.files:
            prefix = self.layout.strip_prefix
            raise bad_archive(name, f"keeps no file: there is nothing below '{prefix}'")
        for part in self.layout.paths:
            if not os.path.lexists(self.root / part):
                raise bad_archive(name, f"has no '{part}', which it should keep")

    def _check(self, entry: Entry, archive: str) -> None:
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise bad_archive(archive, f"holds more than {MAX_ENTRIES} entries")
        parts = entry.path.split("/")
        bad = not entry.path or "\\" in entry.path or "\0" in entry.path
        if bad or entry.path.startswith("/") or {"", ".", ".."} & {*parts}:
            raise bad_archive(archive, f"holds the path {entry.path!r}, which may lead out of it")
        if entry.kind is Kind.OTHER:
            raise bad_archive(archive, f"holds {entry.path!r}, which is {entry.kind.value}")
        if entry.kind is Kind.FILE and entry.mode & _SPECIAL:
            raise bad_archive(archive, f"holds {entry.path!r}, which is setuid or setgid")

    def _directory(self, path: str, archive: str) -> None:
        """Create a directory and its parents, none of which may be a file."""
        try:
            (self.root / path).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise bad_archive(
                archive, f"holds '{path}' as a directory and as something else"
            ) from None

    def _link(self, path: str, target: str, archive: str) -> None:
        inner = os.path.normpath(f"{os.path.dirname(path)}/./{target}".lstrip("/"))  # noqa: PTH120
        if not target or target.startswith("/") or "\0" in target or inner.startswith(".."):
            raise bad_archive(archive, f"links '{path}' to {target!r}, outside of its tree")
        with self._lock:
            known = self._links.setdefault(path, (target, archive))
        if known[0] != target:
            raise bad_archive(archive, f"and {known[1]} hold different '{path}'")

    def _file(self, path: str, content: IO[bytes], archive: str, *, executable: bool) -> None:
        if "/" in path:
            self._directory(path.rpartition("/")[0], archive)
        target = self.root / path
        temporary = target.with_name(f".{target.name}.{threading.get_ident()}")
        try:
            with temporary.open("xb") as file:
                digest = self._copy(content, file, archive)
                size = file.tell()
                os.fchmod(file.fileno(), 0o555 if executable else 0o444)
            entry: list[str | int] = ["executable" if executable else "file", digest, size]
            with self._lock:
                known = self.files.setdefault(path, entry)
                if known != entry:
                    raise bad_archive(archive, f"and another of its files hold different '{path}'")
                if target.is_dir():
                    raise bad_archive(archive, f"holds '{path}' as a directory and a file")
                temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    def _copy(self, content: IO[bytes], file: IO[bytes], archive: str) -> str:
        """Copy with a limit on the actual size; an archive's own sizes may be false."""
        limit = min(MAX_BYTES, self.packed * MAX_RATIO + ALLOWANCE)
        hash_ = hashlib.sha256()
        while chunk := content.read(_CHUNK):
            with self._lock:
                self._bytes += len(chunk)
                if self._bytes > limit:
                    raise bad_archive(archive, f"unpacks to more than {limit >> 20} MB")
            hash_.update(chunk)
            file.write(chunk)
        return hash_.hexdigest()
