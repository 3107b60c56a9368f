"""The output of ``kabuild cache``: figures of the store, and its damages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.canonical import parse_fields
from kabuild.base.errors import KabuildError
from kabuild.base.listing import abridged
from kabuild.base.seal import KEY_FILE, Seal, Trust, UnsealedError, data_home
from kabuild.base.sizes import show_size
from kabuild.model.digest import Digest
from kabuild.store.contents import scan, tree_size
from kabuild.store.limit import Limit
from kabuild.store.paths import MEMORIES, TOOLCHAINS
from kabuild.store.result_closure import QuietBlobs
from kabuild.store.verify import Damage
from kabuild.toolchain.tree_store import TreeStore

SHOWN = 10
"""Lines about one damage; further ones are counted."""


_LEAST = 1 << 20
"""Bytes; whoever sets a smaller limit forgot the unit."""


@dataclass(frozen=True)
class Size:
    """Bytes on the disk."""

    bytes: int


@dataclass(frozen=True)
class Entries(Size):
    """Entries of one kind, and their bytes together."""

    count: int


@dataclass(frozen=True)
class Figures:
    """The store in figures; with the names that ``--json`` prints.

    Attributes:
        bytes: of all entries; ``limit``: the most that a build leaves, in bytes.
        limit_from: where the limit is set.
        oldest_use: seconds since the entry used least recently was used; 0 if there are none.
    """

    store: str
    bytes: int
    limit: int
    limit_from: str
    results: Entries
    blobs: Entries
    toolchains: Entries
    leftovers: Entries
    memories: Size
    debug: Size
    oldest_use: int


def measure(root: Path, limit: Limit) -> Figures:
    """The store at ``root`` in figures."""
    contents = scan(root)
    kinds = (
        [*contents.results.values()],
        [*contents.blobs.values()],
        [*contents.toolchains.values()],
        [*contents.leftovers],
    )
    used = [item.used for items in kinds for item in items]
    results, blobs, toolchains, leftovers = (
        Entries(sum(item.size for item in items), len(items)) for items in kinds
    )
    return Figures(
        store=str(root),
        bytes=contents.size,
        limit=limit.bytes,
        limit_from=limit.source,
        results=results,
        blobs=blobs,
        toolchains=toolchains,
        leftovers=leftovers,
        memories=Size(tree_size(str(root / MEMORIES))),
        debug=Size(tree_size(str(root / "debug"))),
        oldest_use=round(time.time() - min(used)) if used else 0,
    )


def render(found: Figures) -> str:
    """The figures for people."""
    share = 100 * found.bytes / found.limit if found.limit else 0
    size = f"{show_size(found.bytes)} of {show_size(found.limit)}"
    lines = [
        f"store:       {found.store}",
        f"size:        {size} ({share:.0f} %; limit from {found.limit_from})",
    ]
    if found.limit < _LEAST:
        lines.append(
            f"warning:     a limit of {found.limit} bytes keeps nothing; with a unit: 50G, 500M"
        )
    always = {"results": found.results, "blobs": found.blobs}
    for name, part in {
        **always,
        "toolchains": found.toolchains,
        "leftovers": found.leftovers,
    }.items():
        if part.count or name in always:
            lines.append(f"{name + ':':<13}{part.count}, {show_size(part.bytes)}")
    if kept := found.debug.bytes:
        lines.append(f"debug:       {show_size(kept)} of kept sandboxes; kabuild clean --expunge")
    lines.append(f"oldest use:  {_ago(found.oldest_use)}")
    return "\n".join(lines)


def render_damages(
    damages: Iterable[Damage], packages: Mapping[str, str], root: Path
) -> Iterator[str]:
    """A few lines for each damage, with the results that it breaks.

    What another key sealed is only counted: it is no damage, and often it is everything.
    """
    for damage in damages:
        if damage.foreign:
            continue
        state = "; removed" if damage.removed else ""
        yield f"{damage.kind} {damage.name}: {damage.problem}{state}"
        if damage.kind in {"blob", "result"}:
            broken = [f"breaks {_describe(key, packages, root)}" for key in damage.breaks[:SHOWN]]
            if len(damage.breaks) > SHOWN:
                broken.append(f"and {len(damage.breaks) - SHOWN} results more")
            yield from (f"  {line}" for line in broken or ["breaks no result"])


def count_damages(damages: Sequence[Damage]) -> str:
    """How many entries are damaged, and how many are not this user's."""
    foreign = [damage for damage in damages if damage.foreign]
    damaged = len(damages) - len(foreign)
    said = f"{damaged} damaged" if damaged else "no damage found"
    if not foreign:
        return said
    gone = ", now removed" if all(damage.removed for damage in foreign) else ""
    return f"{said}; {len(foreign)} not sealed by you{gone}"


def advise_on(damages: Sequence[Damage]) -> Iterator[str]:
    """What to do about damages that were not removed."""
    left = [damage for damage in damages if not damage.removed]
    if any(damage.foreign for damage in left):
        yield (
            "another key sealed them, so builds ignore them; to use them again, put that key back "
            f"as {data_home() / KEY_FILE}"
        )
    if left:
        yield "to remove them: kabuild cache verify --remove"


def verify_toolchains(root: Path, seal: Seal, *, remove: bool) -> Iterator[Damage]:
    """The unpacked toolchains whose files have changed since."""
    trees = TreeStore(root / TOOLCHAINS, seal)
    for digest in sorted(scan(root).toolchains):
        foreign = False
        try:
            lines = trees.differences(digest)
        except UnsealedError as error:
            lines, foreign = [str(error)], error.trust is Trust.FOREIGN
        except (OSError, ValueError) as error:
            lines = [f"cannot be read: {error}"]
        if not lines:
            continue
        removed = False
        if remove:
            try:
                trees.discard(digest)
                removed = True
            except KabuildError as error:
                lines.append(error.message)
        yield Damage("toolchain", digest, abridged(lines, SHOWN), (), removed, foreign)


def _describe(key: str, packages: Mapping[str, str], root: Path) -> str:
    """A result for people: its package, or else its command."""
    short = f"result {key[:16]}"
    if package := packages.get(key):
        return f"{short} of //{package}"
    command = " ".join(_command(key, QuietBlobs(root)))
    return f"{short}: {command[:70]}" if command else short


def _command(key: str, get: QuietBlobs) -> Iterator[str]:
    """The arguments of a key's command; empty if unknown."""
    try:
        action = dict(parse_fields(get(Digest(key, 0))))
        command = action[1]
        if isinstance(command, bytes):
            for number, value in parse_fields(get(Digest.from_wire(command))):
                if number == 1 and isinstance(value, bytes):
                    yield value.decode()
    except (LookupError, ValueError):
        return


def _ago(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name} ago"
    return "just now"
