"""``kabuild clean``: remove what can be made again."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import click

from kabuild.base.errors import KabuildError, Reason, UsageError
from kabuild.base.fs import remove_tree
from kabuild.loading import find_workspace
from kabuild.store import default_path
from kabuild.store.memory import MemoryStore
from kabuild.store.paths import MEMORIES, TOOLCHAINS

# By name, never the whole directory: $KABUILD_CACHE may point at one that holds other things.
_STORE_PARTS = (
    *("ac", "cas", "tmp", "debug", "leases", "index", "index.lock", "gc.lock"),
    *("records.json", "timings.json", MEMORIES, TOOLCHAINS),
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def read_size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """``20G`` in bytes."""
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(
            Reason.BAD_FLAG, f"--max_size: '{text}' is no size", hint="such as 20G or 500M"
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


@click.command("clean")
@click.option("--expunge", is_flag=True, help="Also remove the store, of all workspaces.")
@click.option(
    "--max_size",
    callback=read_size,
    metavar="SIZE",
    help="Only remove from the store what was used longest ago, until it has this size.",
)
def command(*, expunge: bool, max_size: int | None) -> None:
    """Remove out/, and with --expunge the store's results.

    \b
    kabuild clean
    kabuild clean --max_size=20G
    kabuild clean --expunge

    Cached results and fetched toolchains are shared by all workspaces of this user; without
    --expunge they stay and the next build finds them. With --max_size, out/ and the toolchains
    that this workspace pins stay, too.
    """
    root = find_workspace(Path.cwd())
    if max_size is not None:
        _collect(max_size)
        return
    _remove(root / "out")
    if expunge:
        for part in _STORE_PARTS:
            _remove(default_path() / part)


def _collect(limit: int) -> None:
    from kabuild.store.gc import collect

    done = collect(default_path(), limit, toolchains=_pinned())
    if done.files:
        MemoryStore(default_path() / MEMORIES).forget()
    click.echo(
        f"removed {done.files} files ({done.bytes / 1e6:.1f} MB); "
        f"{done.remaining / 1e6:.1f} MB remain"
    )


def _pinned() -> set[str]:
    """The digests of the toolchains that this workspace pins."""
    from kabuild.cli.declared import declared
    from kabuild.toolchain.inventory import fetched_tree

    pinned: set[str] = set()
    with declared() as toolchains:
        for declaration in toolchains.declarations:
            with suppress(KabuildError):  # what is not locked pins nothing
                tree = fetched_tree(declaration, toolchains.resolver)
                if tree is not None:
                    pinned.add(tree.digest)
    return pinned


def _remove(path: Path) -> None:
    if path.exists() or path.is_symlink():
        remove_tree(path)
        click.echo(f"removed {path}")
