"""``kabuild clean``: remove what builds left."""

from __future__ import annotations

from pathlib import Path

import click

from kabuild.base.fs import remove_tree
from kabuild.loading import find_workspace
from kabuild.store import default_path
from kabuild.store.paths import JOURNALS, MEMORIES, TOOLCHAINS

# By name, never the whole directory: $KABUILD_CACHE may point at one that holds other things.
_STORE_PARTS = (
    *("ac", "cas", "tmp", "debug", "leases", "index", "index.lock", "gc.lock", "evict.lock"),
    *("records.json", "timings.json", "usage", JOURNALS, MEMORIES, TOOLCHAINS),
)


@click.command("clean")
@click.option("--expunge", is_flag=True, help="Also remove the store, of all workspaces.")
def command(*, expunge: bool) -> None:
    """Remove out/, and with --expunge the store's results.

    \b
    kabuild clean
    kabuild clean --expunge

    Cached results and fetched toolchains are shared by all workspaces of this user; without
    --expunge they stay and the next build finds them. 'kabuild cache gc' removes only what
    was used longest ago.
    """
    _remove(find_workspace(Path.cwd()) / "out")
    if expunge:
        for part in _STORE_PARTS:
            _remove(default_path() / part)


def _remove(path: Path) -> None:
    if path.exists() or path.is_symlink():
        remove_tree(path)
        click.echo(f"removed {path}")
