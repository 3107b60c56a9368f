"""``kabuild cache``: the store of results, kept small, whole and portable."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from kabuild.base.errors import ExitCode, KabuildError, Reason, StoreError, UsageError
from kabuild.base.listing import counted
from kabuild.base.sizes import show_size
from kabuild.cli.completion import complete_labels
from kabuild.cli.flags import SolverFlags, WhereFlags
from kabuild.cli.options import argument, takes
from kabuild.cli.types import SIZE, InputPath, OutputFile, say_of, unwritable
from kabuild.loading import find_workspace, load_workspace
from kabuild.store import default_path
from kabuild.store.limit import Limit, size_limit


@click.group("cache")
def command() -> None:
    """Manage the store: stats, gc, verify, export, import.

    \b
    kabuild cache stats
    kabuild cache gc --max_size=5G
    kabuild cache verify --remove
    kabuild cache export softmax.kcache //tasks/hip2hip/softmax
    kabuild cache import softmax.kcache

    A build that makes the store larger than its limit starts 'cache gc' in the background.
    The limit is $KABUILD_CACHE_SIZE, or [cache] size in ~/.config/kabuild/config.toml, or in
    WORKSPACE.toml, or 20G.
    """


@command.command("stats")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def stats(*, as_json: bool) -> None:
    """Show the size, limit and content of the store.

    \b
    kabuild cache stats
    """
    from kabuild.cli.cache_report import measure, render

    found = measure(default_path(), _limit())
    click.echo(json.dumps(asdict(found), indent=2) if as_json else render(found))


@command.command("gc")
@click.option(
    "--max_size",
    type=SIZE,
    help="The size to reach, such as 5G.  [default: the limit]",
)
@click.option("--dry_run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.option("--background", is_flag=True, hidden=True)
def gc(*, max_size: int | None, dry_run: bool, background: bool) -> None:
    """Remove the least recently used results.

    \b
    kabuild cache gc
    kabuild cache gc --max_size=5G --dry_run

    It stops when the store is below its limit. Results are removed whole, with blobs that no
    other result needs. Toolchains pinned by this workspace are kept, and so is everything used
    in the last half hour. Builds may run meanwhile.
    """
    from kabuild.execution.background_gc import SECONDS, SHARE
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
        f"{verb} {counted(done.results, 'result')}, {counted(done.blobs, 'blob')}, "
        f"{counted(done.toolchains, 'toolchain')} "
        f"({show_size(done.bytes)}); {show_size(done.remaining)} remain"
    )
    if done.remaining > limit:
        click.echo(f"still above {show_size(limit)}: the rest is pinned or recently used")


@command.command("verify")
@click.option("--remove", is_flag=True, help="Remove damaged entries; builds make them again.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def verify(*, remove: bool, as_json: bool) -> None:
    """List damaged blobs, results and toolchains.

    \b
    kabuild cache verify
    kabuild cache verify --remove

    Reads everything again. Also counts what another key sealed; builds ignore that. Exits with
    36 when something is damaged or not sealed by you, and with 0 when --remove removed it.
    """
    from kabuild.base.seal import user_seal
    from kabuild.cli.cache_report import (
        advise_on,
        count_damages,
        render_damages,
        verify_toolchains,
    )
    from kabuild.execution.host import cpus
    from kabuild.store.build_memo import MemoTable
    from kabuild.store.paths import MEMORIES
    from kabuild.store.verify import check

    root, seal = default_path(), user_seal()
    if seal.problem:  # of which every entry would look damaged
        what = f"no key to check the store with: {seal.problem}"
        raise StoreError(Reason.NO_SEAL_KEY, what)
    packages = MemoTable(root / MEMORIES).packages()
    began = time.monotonic()
    checked = check(root, seal, remove=remove, threads=cpus())
    damages = [*checked.damages, *verify_toolchains(root, seal, remove=remove)]
    if as_json:
        click.echo(json.dumps([asdict(damage) for damage in damages], indent=2))
    else:
        for line in render_damages(damages, packages, root):
            click.echo(line)
        click.echo(
            f"read {counted(checked.blobs, 'blob')} and {counted(checked.results, 'result')} "
            f"({show_size(checked.bytes)}) in {time.monotonic() - began:.1f} s: "
            + count_damages(damages)
        )
        for line in advise_on(damages):
            click.echo(line)
    if not all(damage.removed for damage in damages):
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


@dataclass(frozen=True, kw_only=True)
class ExportFlags(WhereFlags, SolverFlags):
    """The options of ``kabuild cache export``; flags as for ``kabuild test``."""

    file: Path = argument(type=OutputFile())
    patterns: tuple[str, ...] = argument(nargs=-1, shell_complete=complete_labels)


@command.command("export")
@takes(ExportFlags)
def export(options: ExportFlags) -> None:
    """Write results to a file for another machine.

    \b
    kabuild cache export all.kcache
    kabuild cache export softmax.kcache //tasks/hip2hip/softmax

    Takes the results of PATTERNS, or all. Skips results that were made without a sandbox or
    lack this user's seal: they are never shared.
    """
    from kabuild.cli.cache_selection import all_keys, keys_of
    from kabuild.cli.outputs import check_no_source
    from kabuild.cli.session import builder
    from kabuild.store.portable.writer import export_results

    file, patterns = options.file, options.patterns
    request = replace(options.request(), patterns=patterns, fetch=False)
    chosen = (options.platform, options.devices, options.agent, options.solution)
    if not patterns and any(chosen):
        raise UsageError(Reason.BAD_FLAG, "these flags need a pattern")
    check_no_source("FILE", file)
    with builder() as builds:
        keys = keys_of(builds, request, file) if patterns else all_keys(builds.store)
        try:
            done = export_results(builds.store, file, keys)
        except OSError as error:
            raise unwritable("FILE", file, error) from None
    say_of(
        file,
        f"{file}: {counted(done.results, 'result')}, {counted(done.blobs, 'blob')}, "
        f"{show_size(done.packed)} "
        f"({show_size(done.bytes)} unpacked)",
    )
    if done.left_out:
        say_of(
            file,
            f"skipped {counted(done.left_out, 'result')}: not hermetic, not sealed by you, "
            "or incomplete",
        )


@command.command("import")
@click.argument("file", type=InputPath(exists=True, dir_okay=False, plain=True))
@click.option(
    "--max_bytes",
    type=SIZE,
    help="Refuse a file that unpacks to more.  [default: the store's limit]",
)
def import_(*, file: Path, max_bytes: int | None) -> None:
    """Add results that 'kabuild cache export' wrote.

    \b
    kabuild cache import softmax.kcache

    The digest of every blob is checked; nothing of a damaged file is imported. Whether a result
    is true can only be checked by judging again: import only from people you trust. Imported
    results get your seal, as if you had judged them. Results already in the store are kept.
    """
    from kabuild.store import Store
    from kabuild.store.portable.reader import import_results

    limit = _limit().bytes if max_bytes is None else max_bytes
    with Store.open() as store:
        done = import_results(store, file, limit=limit)
    click.echo(
        f"imported {counted(done.results, 'result')} and {show_size(done.bytes)}; "
        f"already there: {done.known}"
    )
    for key in done.disputed:
        click.echo(f"kept the local result, which differs: {key}", err=True)


def _limit() -> Limit:
    """The limit, from the workspace if there is one."""
    size = None
    with suppress(UsageError):
        root = find_workspace(Path.cwd())
        size = load_workspace(root).cache_size
    return size_limit(size)


def _pinned() -> set[str]:
    """The digests of the toolchains that this workspace pins; none outside a workspace."""
    from kabuild.cli.toolchain_context import declared
    from kabuild.toolchain.inventory import fetched_tree

    pinned: set[str] = set()
    with suppress(KabuildError), declared() as toolchains:
        for declaration in toolchains.declarations:
            with suppress(KabuildError):  # without a lock nothing is pinned
                tree = fetched_tree(declaration, toolchains.resolver)
                if tree is not None:
                    pinned.add(tree.digest)
    return pinned
