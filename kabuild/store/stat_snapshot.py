"""Snapshots of files and directories by ``stat``, and whether they are unchanged.

A directory's times change when an entry of it is made, removed or renamed, so a tree is unchanged
if all its directories and files have their old status. Like the file index, a snapshot trusts only
files that were not modified shortly before the build began to read them; younger ones count as
changed the next time.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from kabuild.store.file_index import QUIET_NS

Look = list[int]
"""A status in five numbers; ``[]`` if too young to be trusted, ``[0]`` if absent."""

Entry = list[Any]
"""``[directory, its look or None if it may change, [[name, look], ...]]``, as JSON."""

UNTRUSTED: Look = []
ABSENT: Look = [0]


def snapshot_tree(root: str, began_ns: int, skipped: Collection[str] = ()) -> list[Entry]:
    """All files and directories at and below ``root``, which may itself be a file.

    Names in ``skipped`` are left out. Links are followed, but linked directories are not entered:
    their content is elsewhere in the tree, or not an input. ``began_ns`` is the start of the build
    that read them.
    """
    if not os.path.isdir(root) or os.path.islink(root):  # noqa: PTH112, PTH114 - hot path
        return snapshot_paths([root], began_ns)
    entries: list[Entry] = []
    pending = [root]
    while pending:
        directory = pending.pop()
        files: list[list[Any]] = []
        look = _look_at(directory, began_ns)
        try:
            with os.scandir(directory) as found:
                items = sorted(found, key=lambda item: item.name)
        except OSError:
            entries.append([directory, UNTRUSTED, []])
            continue
        for item in items:
            if item.name in skipped:
                continue
            if item.is_dir(follow_symlinks=False):
                pending.append(item.path)
            else:
                files.append([item.name, _look_at(item.path, began_ns)])
        entries.append([directory, look, files])
    return entries


def snapshot_paths(paths: Iterable[str], began_ns: int) -> list[Entry]:
    """Single files, directories without their content, and missing paths."""
    entries: dict[str, Entry] = {}
    for path in sorted(set(paths)):
        directory, _, name = path.rpartition("/")
        entry = entries.setdefault(directory, [directory, None, []])
        entry[2].append([name, _look_at(path, began_ns)])
    return list(entries.values())


def snapshot_directories(paths: Iterable[str], began_ns: int) -> list[Entry]:
    """Directories with their entries: additions, removals and renames."""
    return [[path, _look_at(path, began_ns), []] for path in sorted(set(paths))]


def unchanged(entries: Iterable[Entry]) -> bool:
    """Whether everything is unchanged."""
    return next(changes(entries), None) is None


def changes(entries: Iterable[Entry]) -> Iterator[str]:
    """The changed paths."""
    stat = os.stat
    for directory, look, files in entries:
        try:
            if look is not None and _numbers(stat(directory)) != look:
                yield directory
        except OSError:
            if look != ABSENT:
                yield directory
        for name, seen in files:
            path = f"{directory}/{name}"
            try:
                if _numbers(stat(path)) != seen:
                    yield path
            except OSError:
                if seen != ABSENT:
                    yield path


def _look_at(path: str, began_ns: int) -> Look:
    try:
        numbers = _numbers(os.stat(path))  # noqa: PTH116 - the hot path
    except OSError:
        return ABSENT
    return numbers if began_ns - max(numbers[0], numbers[1]) > QUIET_NS else UNTRUSTED


def _numbers(status: os.stat_result) -> Look:
    return [
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
        status.st_ino,
        status.st_mode,
    ]
