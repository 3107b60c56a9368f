"""``kabuild clean``: remove what builds left."""

from __future__ import annotations

from pathlib import Path

import click

from kabuild.base.errors import Position, Reason, StoreError
from kabuild.base.fs import remove_tree
from kabuild.loading import find_workspace
from kabuild.store import default_path
from kabuild.store.paths import MEMORIES, SCRATCH, TOOLCHAINS, journals_of
from kabuild.store.users import user

# By name, never the whole directory: $KABUILD_CACHE may point at one that holds other things. Not
# the leases: a build that takes a device now would share it with the next one.
_STORE_PARTS = (
    *("ac", "cas", SCRATCH, "debug", "index", "index.lock", "gc.lock", "evict.lock"),
    *("records.json", "timings.json", "usage", "journals", MEMORIES, TOOLCHAINS),
)


@click.command("clean")
@click.option("--expunge", is_flag=True, help="Also remove the store, of all workspaces.")
def command(*, expunge: bool) -> None:
    """Remove out/, and with --expunge the store's results.

    \b
    kabuild clean
    kabuild clean --expunge

    All workspaces of a user share cached results and fetched toolchains; only --expunge
    removes them, and it refuses while a build runs. 'kabuild cache gc' removes just the least
    recently used results, and works during builds.
    """
    out, store = find_workspace(Path.cwd()) / "out", default_path()
    if expunge and (found := user(store)):
        raise StoreError(
            Reason.STORE_BUSY,
            f"{found} is using the store at {store}; nothing was removed",
            hint="wait until it ends; 'kabuild cache gc' makes room meanwhile",
        )
    _remove(out)
    if expunge:
        for part in _STORE_PARTS:
            _remove(store / part)
        _remove(journals_of(store))


def _remove(path: Path) -> None:
    if not path.exists() and not path.is_symlink():
        return
    try:
        remove_tree(path)
    except OSError as error:
        what = f"cannot be removed: {error.strerror}: {error.filename}"
        raise StoreError(Reason.STORE_UNWRITABLE, what, position=Position(str(path))) from None
    click.echo(f"removed {path}")
