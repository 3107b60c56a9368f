"""``kabuild clean``: remove what can be made again."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from kabuild.loading import find_workspace
from kabuild.store import default_path

# By name, never the whole directory: $KABUILD_CACHE may point at one that holds other things.
_STORE_PARTS = (
    *("ac", "cas", "tmp", "debug", "leases", "index", "index.lock", "gc.lock"),
    *("records.json", "timings.json"),
)


@click.command("clean")
@click.option("--expunge", is_flag=True, help="Also remove the store, of all workspaces.")
def command(*, expunge: bool) -> None:
    """Remove out/, and with --expunge the store's results.

    \b
    kabuild clean
    kabuild clean --expunge

    Cached results are shared by all workspaces of this user; without --expunge they stay
    and the next build finds them.
    """
    _remove(find_workspace(Path.cwd()) / "out")
    if expunge:
        for part in _STORE_PARTS:
            _remove(default_path() / part)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_make_writable)
    elif path.exists() or path.is_symlink():
        path.unlink()
    else:
        return
    click.echo(f"removed {path}")


def _make_writable(function: object, path: str, _: object) -> None:
    """Blobs and views are read-only; their directories may be, too."""
    Path(path).parent.chmod(0o755)
    if callable(function):
        function(path)
