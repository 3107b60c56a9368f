"""Changed files: as the system reports them, else found by looking again and again."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kabuild.cli.streams import reader_left
from kabuild.watch import Changes
from kabuild.watched import Places

DEBOUNCE_MS = 50
"""Milliseconds of quiet after a change: editors write a file in several steps."""

LOOK_MS = 1000
"""Milliseconds between two checks for recreated directories."""

POLL_SECONDS = 0.3
"""Seconds between two looks at all files, if the system reports no changes."""

_SHARE = 10
"""A look may take up to this part of the time: large workspaces are looked at less often."""

_Group = set[Path]
_Known = dict[Path, tuple[int, int] | None]
"""Directories with device and inode number; None for a missing one."""

_Listing = dict[Path, tuple[int, ...]]


@dataclass
class ChangedFiles:
    """Changed paths in groups, until Ctrl-C or the end of stdout's reader.

    ``warn`` is called once if the system cannot report changes, as where its limits are reached.
    """

    warn: Callable[[str], None]
    _is_polling: bool = field(default=False, init=False)

    def __call__(self, places: Callable[[], Places]) -> Changes:
        """Groups of changed paths; empty ones now and then.

        To inotify, a recreated directory is a different one. All is watched anew then, and what
        changed meanwhile is found by its status.
        """
        with contextlib.suppress(KeyboardInterrupt):
            meant = places()
            known = _identified(meant.directories())
            seen = _Seen(known)
            while not reader_left():
                is_first = True
                for group in self._groups([path for path, identity in known.items() if identity]):
                    changed = group | seen.changed(known) if is_first else group
                    is_first = False
                    seen.note(changed)
                    if changed:
                        yield changed
                    before, meant = meant, places()
                    is_stale = meant != before or any(map(Path.is_dir, group))
                    now = _identified(meant.directories() if is_stale else known)
                    # A directory that is in the group itself was removed; a new one at its place
                    # may have its inode number.
                    lost = {path for path in group & known.keys() if not path.is_file()}
                    if now != known or lost or reader_left():
                        differ = {path for path in now if now[path] != known.get(path)}
                        renewed = differ | (lost & now.keys())
                        known = now
                        break
                if renewed:
                    yield renewed

    def _groups(self, watched: list[Path]) -> Iterator[_Group]:
        """What changes in directories and files, until one of them disappears."""
        if not watched:
            yield from _idle()
        if not self._is_polling:
            try:
                yield from _notified(watched)
            except FileNotFoundError:
                yield set()  # removed just now, which the caller notices
                return
            except (OSError, ValueError, _internal_error()) as error:
                self._is_polling = True
                why = str(error).partition(" about [")[0].rstrip(".")
                every = f"looking at all files every {POLL_SECONDS} s instead"
                self.warn(f"the system cannot report changes of files: {why}; {every}")
        yield from _polled(watched)


class _Seen:
    """The files as they were when they were last reported."""

    def __init__(self, watched: Iterable[Path]) -> None:
        self._listing = _listed(watched)

    def changed(self, watched: Iterable[Path]) -> _Group:
        """What differs now."""
        before, self._listing = self._listing, _listed(watched)
        return _differences(before, self._listing)

    def note(self, paths: _Group) -> None:
        """Report ``paths`` as they are now."""
        for path in paths:
            self._listing.pop(path, None)
        self._listing.update(_listed(paths))


def _notified(watched: Iterable[Path]) -> Iterator[_Group]:
    """Changes by inotify. Raises ``OSError``, ``ValueError`` and watchfiles' internal error."""
    import watchfiles

    groups = watchfiles.watch(
        *watched,
        debounce=DEBOUNCE_MS * 4,
        step=DEBOUNCE_MS,
        watch_filter=None,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        recursive=False,
        force_polling=False,
        ignore_permission_denied=False,
    )
    for group in groups:
        yield {Path(path) for _, path in group}


def _internal_error() -> type[Exception]:
    """What watchfiles raises for most errors of the system, and for names that are not UTF-8."""
    from watchfiles._rust_notify import WatchfilesRustInternalError

    return WatchfilesRustInternalError


def _polled(watched: Collection[Path]) -> Iterator[_Group]:
    """Changes by status, and nothing at times."""
    seen = _Seen(watched)
    while True:
        started = time.monotonic()
        group = seen.changed(watched)
        took = time.monotonic() - started
        yield group
        time.sleep(max(POLL_SECONDS, _SHARE * took))


def _idle() -> Iterator[_Group]:
    """The changes while no directory exists: none, at intervals."""
    while True:
        time.sleep(LOOK_MS / 1000)
        yield set()


def _differences(before: _Listing, now: _Listing) -> _Group:
    return {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}


def _listed(watched: Iterable[Path]) -> _Listing:
    """The status of all entries of directories, and of single files."""
    found: _Listing = {}
    for path in watched:
        with contextlib.suppress(OSError):
            if not path.is_dir():
                found[path] = _numbers(path.lstat())
                continue
            with os.scandir(path) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        found[Path(entry.path)] = _numbers(entry.stat(follow_symlinks=False))
    return found


def _numbers(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISDIR(status.st_mode):  # its times change with its entries, which are watched
        return (status.st_ino,)
    return status.st_ino, status.st_size, status.st_ctime_ns


def _identified(paths: Iterable[Path]) -> _Known:
    return {path: _identity(path) for path in sorted(paths)}


def _identity(path: Path) -> tuple[int, int] | None:
    """The identity of a directory; None if there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
