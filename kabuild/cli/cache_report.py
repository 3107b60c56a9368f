"""The output of ``kabuild cache``: figures of the store, and its damages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kabuild.base.canonical import parse_fields
from kabuild.base.errors import KabuildError
from kabuild.base.listing import abridged
from kabuild.base.seal import Seal, UnsealedError
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


def measure(root: Path, limit: Limit) -> dict[str, Any]:
    """The store in figures: sizes in bytes, ages in seconds."""
    contents = scan(root)
    parts = {
        "results": contents.results.values(),
        "blobs": contents.blobs.values(),
        "toolchains": contents.toolchains.values(),
        "leftovers": contents.leftovers,
    }
    used = [item.used for items in parts.values() for item in items]
    return {
        "store": str(root),
        "bytes": contents.size,
        "limit": limit.bytes,
        "limit_from": limit.source,
        **{
            name: {"count": len(items), "bytes": sum(item.size for item in items)}
            for name, items in parts.items()
        },
        "memories": {"bytes": tree_size(str(root / MEMORIES))},
        "debug": {"bytes": tree_size(str(root / "debug"))},
        "oldest_use": round(time.time() - min(used)) if used else 0,
    }


def render(found: Mapping[str, Any], limit: Limit) -> str:
    """The figures for people."""
    share = 100 * found["bytes"] / limit.bytes if limit.bytes else 0
    size = f"{show_size(found['bytes'])} of {show_size(limit.bytes)}"
    lines = [
        f"store:       {found['store']}",
        f"size:        {size} ({share:.0f} %; limit from {limit.source})",
    ]
    for name in ("results", "blobs", "toolchains", "leftovers"):
        part = found[name]
        if part["count"] or name in {"results", "blobs"}:
            lines.append(f"{name + ':':<13}{part['count']}, {show_size(part['bytes'])}")
    if kept := found["debug"]["bytes"]:
        lines.append(f"debug:       {show_size(kept)} of kept sandboxes; kabuild clean --expunge")
    lines.append(f"oldest use:  {_ago(found['oldest_use'])}")
    return "\n".join(lines)


def render_damages(
    damages: Iterable[Damage], packages: Mapping[str, str], root: Path
) -> Iterator[str]:
    """A few lines for each damage, with the results that it breaks."""
    for damage in damages:
        state = "; removed" if damage.removed else ""
        yield f"{damage.kind} {damage.name}: {damage.problem}{state}"
        if damage.kind in {"blob", "result"}:
            broken = [f"breaks {_describe(key, packages, root)}" for key in damage.breaks[:SHOWN]]
            if len(damage.breaks) > SHOWN:
                broken.append(f"and {len(damage.breaks) - SHOWN} results more")
            yield from (f"  {line}" for line in broken or ["breaks no result"])


def verify_toolchains(root: Path, seal: Seal, *, remove: bool) -> Iterator[Damage]:
    """The unpacked toolchains whose files have changed since."""
    trees = TreeStore(root / TOOLCHAINS, seal)
    for digest in sorted(scan(root).toolchains):
        try:
            lines = trees.differences(digest)
        except UnsealedError as error:
            lines = [str(error)]
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
        yield Damage("toolchain", digest, abridged(lines, SHOWN), (), removed)


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
