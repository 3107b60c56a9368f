"""Reading the whole store again: which blobs are damaged, and which results that breaks."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from kabuild.base.fs import remove_tree
from kabuild.store.contents import Item, scan
from kabuild.store.eviction import evicting
from kabuild.store.faults import writing
from kabuild.store.memory import MemoryStore
from kabuild.store.paths import MEMORIES
from kabuild.store.promises import QuietBlobs, files_of, named_by

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Damage:
    """One blob or result that is not what it should be.

    Attributes:
        kind: ``blob`` or ``result``.
        name: the hash that it is filed under.
        breaks: the hashes of the keys whose results cannot be used because of it.
        removed: whether it is gone now, with the results that it breaks.
    """

    kind: str
    name: str
    problem: str
    breaks: tuple[str, ...]
    removed: bool = False


@dataclass(frozen=True)
class Checked:
    """What was read, and what is damaged."""

    blobs: int
    results: int
    bytes: int
    damages: tuple[Damage, ...]


@dataclass(frozen=True)
class _Seen:
    """A blob that is damaged, and how."""

    item: Item
    problem: str


def check(
    root: Path,
    *,
    remove: bool = False,
    threads: int = 2,
    advanced: Callable[[int], None] = lambda _: None,
) -> Checked:
    """Hash every blob and read every result. What goes meanwhile is left out.

    With ``remove``, damaged blobs and the results that they break are removed, so that they
    are made again. ``advanced`` hears of bytes that were read. Raises StoreError.
    """
    contents = scan(root)

    def look(item: Item) -> _Seen | None:
        seen = _look(item)
        advanced(item.size)
        return seen

    with ThreadPoolExecutor(threads) as pool:
        bad = {seen.item.name: seen for seen in pool.map(look, contents.blobs.values()) if seen}
    breaks: defaultdict[str, list[str]] = defaultdict(list)
    lost: dict[str, str] = {}
    for name, item in sorted(contents.results.items()):
        for blob, problem in _promised(root, item, bad):
            if blob in bad:
                breaks[blob].append(name)
            elif problem:
                lost[name] = problem
    damages = [
        Damage("blob", name, seen.problem, tuple(breaks[name]))
        for name, seen in sorted(bad.items())
    ]
    damages += [Damage("result", name, problem, (name,)) for name, problem in lost.items()]
    if remove and damages:
        with writing(str(root)):
            damages = [_remove(root, damage, bad, contents.results) for damage in damages]
            MemoryStore(root / MEMORIES).forget()
    return Checked(len(contents.blobs), len(contents.results), contents.size, tuple(damages))


def _look(item: Item) -> _Seen | None:
    """What is wrong with a blob; None where nothing is, or where it is gone."""
    try:
        status = os.stat(item.path, follow_symlinks=False)  # noqa: PTH116 - one per blob
        if not stat.S_ISREG(status.st_mode):
            return _Seen(item, "is no file")
        hasher = hashlib.sha256()
        with open(item.path, "rb") as file:
            while chunk := file.read(_CHUNK):
                hasher.update(chunk)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _Seen(item, f"cannot be read: {error.strerror}")
    if hasher.hexdigest() != item.name:
        return _Seen(item, f"its content is {hasher.hexdigest()}")
    if Path(item.path).parent.name != item.name[:2]:
        return _Seen(item, f"lies in {Path(item.path).parent.name}/")
    return None


def _promised(root: Path, item: Item, bad: Container[str]) -> Iterator[tuple[str, str]]:
    """The blobs of a result, each with what is wrong; ``""`` as name where all of it is."""
    get = QuietBlobs(root)
    try:
        entry = Path(item.path).read_bytes()
        files, trees = named_by(entry)
        for tree in trees:
            if tree.hash not in bad and get.has(tree):
                files += files_of(tree, get)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        yield "", f"cannot be understood: {error}"
        return
    for digest in (*files, *trees):
        yield digest.hash, "" if get.has(digest) else f"its blob {digest} is not in the store"


def _remove(
    root: Path, damage: Damage, bad: Mapping[str, _Seen], results: Mapping[str, Item]
) -> Damage:
    """Remove what is damaged, unless it was made again meanwhile, and what it breaks."""
    with evicting(str(root)):
        seen = bad.get(damage.name)
        if damage.kind == "blob" and seen and _look(seen.item):
            remove_tree(Path(seen.item.path))
        for name in damage.breaks:
            with contextlib.suppress(FileNotFoundError):
                Path(results[name].path).unlink()
    return replace(damage, removed=True)
