"""``kabuild cache``: the store of results, kept small, whole and portable."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from kabuild.base.errors import ExitCode, KabuildError, Reason, UsageError
from kabuild.base.sizes import parse_size, show_size
from kabuild.loading import find_workspace, load_workspace
from kabuild.store import default_path
from kabuild.store.limit import Limit, size_limit


def read_size(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """``20G`` in bytes."""
    try:
        return None if text is None else parse_size(text)
    except ValueError as error:
        raise UsageError(Reason.BAD_FLAG, f"--{option.name}: {error}") from None


@click.group("cache")
def command() -> None:
    """Look after the store: stats, gc, verify, export, import.

    \b
    kabuild cache stats
    kabuild cache gc --max_size=5G
    kabuild cache verify --remove
    kabuild cache export softmax.kcache //tasks/hip2hip/softmax
    kabuild cache import softmax.kcache

    After a build that made it larger than its limit, the store is collected in the
    background. The limit is $KABUILD_CACHE_SIZE, or [cache] size in
    ~/.config/kabuild/config.toml, or in WORKSPACE.toml, or 20G.
    """


@command.command("stats")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def stats(*, as_json: bool) -> None:
    """Say what the store holds, how large it is and how large it may become."""
    from kabuild.cli.cache_report import measure, render

    limit = _limit()
    found = measure(default_path(), limit)
    click.echo(json.dumps(found, indent=2) if as_json else render(found, limit))


@command.command("gc")
@click.option(
    "--max_size", callback=read_size, metavar="SIZE", help="Such as 5G.  [default: the limit]"
)
@click.option("--dry_run", is_flag=True, help="Only say what would go.")
@click.option("--background", is_flag=True, hidden=True)
def gc(*, max_size: int | None, dry_run: bool, background: bool) -> None:
    """Remove what was used longest ago until the store is as small as it should be.

    A result goes with all that only it needs, or stays with all of it. The toolchains that
    this workspace pins stay, and so does what was used in the last half hour. Builds can
    run meanwhile.
    """
    from kabuild.execution.upkeep import SECONDS, SHARE
    from kabuild.store.gc import collect

    limit = _limit().bytes if max_size is None else max_size
    if background:
        os.nice(19)
        collect(default_path(), int(limit * SHARE), keep=_pinned(), seconds=SECONDS)
        return
    done = collect(default_path(), limit, keep=_pinned(), dry_run=dry_run)
    assert done is not None
    verb = "would remove" if dry_run else "removed"
    click.echo(
        f"{verb} {done.results} results, {done.blobs} blobs, {done.toolchains} toolchains "
        f"({show_size(done.bytes)}); {show_size(done.remaining)} remain"
    )
    if done.remaining > limit:
        click.echo(f"more than {show_size(limit)}: the rest is pinned, or was used just now")


@command.command("verify")
@click.option("--remove", is_flag=True, help="Remove what is damaged, so that it is made again.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def verify(*, remove: bool, as_json: bool) -> None:
    """Read every blob, result and toolchain again and name what is damaged.

    Exits with 36 when something is, and with 0 when --remove removed it.
    """
    from kabuild.cli.cache_report import render_damages, verify_toolchains
    from kabuild.execution.host import cpus
    from kabuild.store.memory import MemoryStore
    from kabuild.store.paths import MEMORIES
    from kabuild.store.verify import check

    root = default_path()
    packages = MemoryStore(root / MEMORIES).packages()
    began = time.monotonic()
    checked = check(root, remove=remove, threads=cpus())
    damages = [*checked.damages, *verify_toolchains(root, remove=remove)]
    if as_json:
        click.echo(json.dumps([_plain(damage) for damage in damages], indent=2))
    else:
        for line in render_damages(damages, packages, root):
            click.echo(line)
        click.echo(
            f"read {checked.blobs} blobs and {checked.results} results "
            f"({show_size(checked.bytes)}) in {time.monotonic() - began:.1f} s: "
            + (f"{len(damages)} damaged" if damages else "all as they should be")
        )
        if damages and not remove:
            click.echo("to remove them: kabuild cache verify --remove")
    if not all(damage.removed for damage in damages):
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("patterns", nargs=-1)
@click.option("--platform", metavar="NAME[:ARCH]", help="As for 'kabuild test'.")
@click.option("--agent", metavar="NAME", help="As for 'kabuild test'.")
@click.option("--solution", type=click.Path(path_type=Path), help="As for 'kabuild test'.")
def export(*, file: Path, patterns: tuple[str, ...], **flags: Any) -> None:
    """Write results to one file, for another machine: those of PATTERNS, or all.

    Left out is what was made without a sandbox: such results are never shared.
    """
    from kabuild.cli.cache_selection import all_keys, keys_of
    from kabuild.store import Store
    from kabuild.store.portable.writer import export_results

    if not patterns and any(flags.values()):
        raise UsageError(
            Reason.BAD_FLAG, "flags choose among the results of patterns, and there is no pattern"
        )
    with Store.open() as store:
        keys = keys_of(store, patterns, flags) if patterns else all_keys(store)
        try:
            done = export_results(store, file, keys)
        except OSError as error:
            raise UsageError(Reason.BAD_FLAG, f"{file}: {error.strerror}") from None
    click.echo(
        f"{file}: {done.results} results, {done.blobs} blobs, {show_size(done.packed)} "
        f"({show_size(done.bytes)} unpacked)"
    )
    if done.left_out:
        click.echo(f"left out {done.left_out} results: not hermetic, or not all there")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--max_bytes",
    callback=read_size,
    metavar="SIZE",
    help="What the file may unpack to.  [default: the store's limit]",
)
def import_(*, file: Path, max_bytes: int | None) -> None:
    """Take over the results of a file that 'kabuild cache export' wrote.

    Every blob is checked by its digest, and nothing is taken over of a file that is damaged.
    That a result is what its action comes to, nobody can check but by running it: import
    what you would have believed. What the store already has stays as it is.
    """
    from kabuild.store import Store
    from kabuild.store.portable.reader import import_results

    limit = _limit().bytes if max_bytes is None else max_bytes
    with Store.open() as store:
        done = import_results(store, file, limit=limit)
    click.echo(
        f"imported {done.results} results and {show_size(done.bytes)}; "
        f"{done.known} results were there already"
    )
    for key in done.disputed:
        click.echo(f"kept our own result, which differs: {key}", err=True)


def _limit() -> Limit:
    """The limit, with the word of the workspace where we are in one."""
    size = None
    with suppress(UsageError):
        root = find_workspace(Path.cwd())
        size = load_workspace(root).cache_size
    return size_limit(size)


def _pinned() -> set[str]:
    """The digests of the toolchains that this workspace pins; none outside of one."""
    from kabuild.cli.declared import declared
    from kabuild.toolchain.inventory import fetched_tree

    pinned: set[str] = set()
    with suppress(KabuildError), declared() as toolchains:
        for declaration in toolchains.declarations:
            with suppress(KabuildError):  # what is not locked pins nothing
                tree = fetched_tree(declaration, toolchains.resolver)
                if tree is not None:
                    pinned.add(tree.digest)
    return pinned


def _plain(damage: Any) -> dict[str, Any]:
    return {
        "kind": damage.kind,
        "name": damage.name,
        "problem": damage.problem,
        "breaks": list(damage.breaks),
        "removed": damage.removed,
    }
