"""Reads the whole store again: finds damaged and unsealed entries, and broken results."""

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
from kabuild.base.reading import open_plain, read_plain
from kabuild.base.seal import Seal, Trust, UnsealedError
from kabuild.store.build_memo import KIND as MEMORY
from kabuild.store.build_memo import MemoTable
from kabuild.store.cas import MOST_BLOB
from kabuild.store.contents import Item, scan
from kabuild.store.eviction import evicting
from kabuild.store.faults import writing
from kabuild.store.file_index import KIND as FILE_INDEX
from kabuild.store.paths import INDEX, MEMORIES, RECORDS
from kabuild.store.result_closure import QuietBlobs, files_of, named_by
from kabuild.store.sealed_entry import MOST_BYTES, trust_of

RECORDS_KIND = "records"
"""As ``toolchain.record_memory`` seals it, which this layer does not import."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Damage:
    """One damaged or unsealed file: a blob, a result, or another file.

    Attributes:
        kind: ``blob``, ``result``, or another kind of file, such as ``memory``.
        name: the hash that it is filed under, or the file's name.
        breaks: the hashes of the keys whose results it makes unusable.
        removed: whether it was removed, with the results that it breaks.
        foreign: another key sealed it: it is ignored, and may well be whole.
    """

    kind: str
    name: str
    problem: str
    breaks: tuple[str, ...]
    removed: bool = False
    foreign: bool = False


@dataclass(frozen=True)
class Checked:
    """The entries that were read, and the damaged ones."""

    blobs: int
    results: int
    bytes: int
    damages: tuple[Damage, ...]


@dataclass(frozen=True)
class _Need:
    """A blob that a result needs, ``""`` for the result itself; and what is wrong with it."""

    blob: str
    problem: str = ""
    foreign: bool = False


@dataclass(frozen=True)
class _Seen:
    """A damaged blob, and how."""

    item: Item
    problem: str


def check(
    root: Path,
    seal: Seal,
    *,
    remove: bool = False,
    threads: int = 2,
    advanced: Callable[[int], None] = lambda _: None,
) -> Checked:
    """Hash every blob, read every result and check every seal; skip files that disappear.

    With ``remove``, damaged blobs and the results that they break are removed, so that they are
    made again. ``advanced`` is called with the bytes that were read. Raises StoreError.
    """
    contents = scan(root)

    def look(item: Item) -> _Seen | None:
        seen = _look(item)
        advanced(item.size)
        return seen

    with ThreadPoolExecutor(threads) as pool:
        bad = {seen.item.name: seen for seen in pool.map(look, contents.blobs.values()) if seen}
    breaks: defaultdict[str, list[str]] = defaultdict(list)
    lost: dict[str, _Need] = {}
    for name, item in sorted(contents.results.items()):
        for need in _promised(root, item, bad, seal):
            if need.blob in bad:
                breaks[need.blob].append(name)
            elif need.problem:
                lost[name] = need
    damages = [
        Damage("blob", name, seen.problem, tuple(breaks[name]))
        for name, seen in sorted(bad.items())
    ]
    damages += [
        Damage("result", name, need.problem, (name,), foreign=need.foreign)
        for name, need in lost.items()
    ]
    if remove and damages:
        with writing(str(root)):
            damages = [_remove(root, damage, bad, contents.results) for damage in damages]
            MemoTable(root / MEMORIES).forget()
    damages += _unsealed(root, seal, remove=remove)
    return Checked(len(contents.blobs), len(contents.results), contents.size, tuple(damages))


def _look(item: Item) -> _Seen | None:
    """The problem of a blob; None if it is intact or missing."""
    try:
        status = os.stat(item.path, follow_symlinks=False)  # noqa: PTH116 - one per blob
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BLOB:
            is_file = stat.S_ISREG(status.st_mode)
            return _Seen(item, f"has more than {MOST_BLOB:,} bytes" if is_file else "is not a file")
        hasher = hashlib.sha256()
        with open_plain(Path(item.path)) as file:
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


def _unsealed(root: Path, seal: Seal, *, remove: bool) -> list[Damage]:
    """The other files that can change a verdict and lack this user's seal."""
    damages = []
    for file in unsealed_files(root, seal):
        if remove:
            with writing(str(root)):
                file.path.unlink(missing_ok=True)
        damages.append(
            Damage(file.kind, file.path.name, file.problem, (), remove, foreign=file.foreign)
        )
    return damages


def _promised(root: Path, item: Item, bad: Container[str], seal: Seal) -> Iterator[_Need]:
    """What a result needs; itself, if it cannot be used."""
    get = QuietBlobs(root)
    try:
        entry = read_plain(Path(item.path), MOST_BYTES)
        trust = trust_of(entry, item.name, seal)
        if trust is not Trust.SEALED:
            yield _Need("", f"not trusted: it is {trust.value}", trust is Trust.FOREIGN)
            return
        files, trees = named_by(entry)
        for tree in trees:
            if tree.hash not in bad and get.has(tree):
                files += files_of(tree, get)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        yield _Need("", f"not trusted: {getattr(error, 'strerror', None) or error}")
        return
    for digest in (*files, *trees):
        missing = "" if get.has(digest) else f"its blob {digest} is not in the store"
        yield _Need(digest.hash, missing)


def _remove(
    root: Path, damage: Damage, bad: Mapping[str, _Seen], results: Mapping[str, Item]
) -> Damage:
    """Remove damaged entries, unless they were made again meanwhile, and broken results."""
    with evicting(str(root)):
        seen = bad.get(damage.name)
        if damage.kind == "blob" and seen and _look(seen.item):
            remove_tree(Path(seen.item.path))
        for name in damage.breaks:
            with contextlib.suppress(FileNotFoundError):
                Path(results[name].path).unlink()
    return replace(damage, removed=True)


@dataclass(frozen=True)
class Unsealed:
    """A file that is ignored, and why."""

    kind: str
    path: Path
    problem: str
    foreign: bool = False


def unsealed_files(root: Path, seal: Seal) -> Iterator[Unsealed]:
    """The file index, the memories and the records of a store that this user did not write."""
    files = [(FILE_INDEX, "", root / INDEX), (RECORDS_KIND, "", root / RECORDS)]
    files += [(MEMORY, path.stem, path) for path in sorted((root / MEMORIES).glob("*.json"))]
    for kind, name, path in files:
        try:
            seal.unwrap(kind, name, read_plain(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Unsealed(kind, path, f"cannot be read: {error.strerror}")
        except UnsealedError as error:
            yield Unsealed(kind, path, str(error), error.trust is Trust.FOREIGN)
