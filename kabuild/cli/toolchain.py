"""``kabuild toolchain``: compilers and interpreters, pinned by content."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kabuild.base.errors import (
    DriftError,
    ExitCode,
    KabuildError,
    Reason,
    ToolchainError,
    UsageError,
)
from kabuild.cli.heartbeat import said_when_slow
from kabuild.cli.streams import in_colour
from kabuild.cli.toolchain_context import ToolchainContext, declared, users
from kabuild.cli.types import InputPath
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.report.fetch_progress import make_fetch_progress, megabytes
from kabuild.report.table import render_columns
from kabuild.toolchain import Declaration, Fetched, LocalTree
from kabuild.toolchain.completeness import installation, lacking, not_whole
from kabuild.toolchain.inventory import Item, State, fetched_tree, take_stock
from kabuild.toolchain.lock import LOCK_FILE, LockEntry, is_adopted, is_current
from kabuild.toolchain.parts import is_there
from kabuild.toolchain.tree_check import TreeCheck

_COLUMNS = ("TOOLCHAIN", "ROLE", "PLATFORMS", "KIND", "VERSION", "STATE")
_SPARE = (_COLUMNS.index("KIND"), _COLUMNS.index("ROLE"), _COLUMNS.index("PLATFORMS"))
"""Columns that a narrow terminal omits; ``toolchain show`` has them."""
_PIPE = 10_000
"""The width without a terminal: other programs get every column."""
_NOT_THERE = (State.MISSING.value, State.TO_FETCH.value)
"""How the state of a missing toolchain begins."""


@click.group("toolchain")
def command() -> None:
    """List, show, pin, fetch, verify and lock toolchains.

    \b
    kabuild toolchain list
    kabuild toolchain fetch nvcc
    kabuild toolchain pin nvcc --from /usr/local/cuda

    NAME is a label, or a name that only one toolchain has; those in //toolchains/... come
    first. toolchains/README.md describes declarations.
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def list_(*, as_json: bool) -> None:
    """List toolchains and whether each is ready.

    \b
    kabuild toolchain list

    A narrow terminal shows fewer columns; 'kabuild toolchain show' prints everything.
    """
    with declared() as toolchains:
        items = [take_stock(item, toolchains.resolver) for item in toolchains.declarations]
    if as_json:
        click.echo(json.dumps([_plain(item) for item in items], indent=2))
        return
    rows = [_COLUMNS, *map(_row, items)]
    width = shutil.get_terminal_size((_PIPE, 24)).columns
    for line in render_columns(rows, width, spare=_SPARE, cut=_COLUMNS.index("VERSION")):
        click.echo(line)


@command.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(*, name: str, as_json: bool) -> None:
    """Show a toolchain's files, its digest, and its users.

    \b
    kabuild toolchain show nvcc
    """
    with declared() as toolchains:
        declaration = toolchains.find(name)
        item = take_stock(declaration, toolchains.resolver)
        used_by = users(toolchains.loader, declaration)
        entry = toolchains.resolver.lock().find(declaration)
    if as_json:
        click.echo(json.dumps({**_plain(item), "used_by": used_by}, indent=2))
        return
    for key, value in _plain(item).items():
        if value:
            click.echo(f"{key + ':':<13}{', '.join(value) if isinstance(value, list) else value}")
    click.echo(f"{'declared:':<13}{declaration.position}")
    if entry:
        if entry.paths:
            click.echo(f"{'parts:':<13}{', '.join(entry.paths)}")
        for machine, files in sorted(entry.files.items()):
            for file in files:
                click.echo(f"{'file:':<13}{file.base} ({machine}, {megabytes(file.size)})")
                click.echo(f"{'':<13}  sha256:{file.sha256}")
    click.echo(f"{'used by:':<13}{', '.join(used_by) or 'no target; rules may use it'}")
    if item.problem:
        click.echo(f"{'problem:':<13}{item.problem}")


@command.command("fetch")
@click.argument("names", nargs=-1)
@click.option("--force", is_flag=True, help="Fetch again, and replace changed files.")
def fetch(*, names: tuple[str, ...], force: bool) -> None:
    """Download pinned toolchains into the store: those named, or all.

    \b
    kabuild toolchain fetch
    kabuild toolchain fetch nvcc --force

    Afterwards no network is needed. Toolchains in the store are not fetched again; one that was
    changed there is an error, which --force repairs. Errors do not stop the rest; the exit code
    is that of the first.
    """
    from kabuild.toolchain.fetch.fetcher import Fetcher

    problems: list[KabuildError] = []
    with declared() as toolchains:
        trees = toolchains.trees
        fetcher = Fetcher(trees, progress=make_fetch_progress())
        for declaration in toolchains.chosen(names):
            pin = declaration.pin
            try:
                tree = fetched_tree(declaration, toolchains.resolver)
                if tree is None or not isinstance(pin, Fetched):
                    if names:
                        click.echo(f"{declaration.label.short} is not fetched: it is installed")
                    continue
                if force:
                    trees.discard(tree.digest)
                if trees.has(tree.digest):
                    position = toolchains.resolver.lock().position(declaration)
                    TreeCheck(trees).require(declaration, position, tree.digest)
                fetcher(declaration, pin, tree.files, tree.digest)
            except ToolchainError as problem:
                problems.append(problem)
            else:
                click.echo(f"{declaration.label.short}  {trees.tree(tree.digest)}")
    _fail(problems)


@command.command("lock")
@click.argument("names", nargs=-1)
def lock(*, names: tuple[str, ...]) -> None:
    """Write the digests of all toolchains to a lock.

    \b
    kabuild toolchain lock
    kabuild toolchain lock nvcc

    The lock is toolchains/lock.toml. An entry that matches its declaration is kept. A toolchain
    that you name is locked anew; this also undoes 'kabuild toolchain pin'.

    A toolchain that cannot be locked keeps its old entry, and the rest is locked. Exits with the
    code of the first problem. A local tree that this machine lacks is a problem only if you
    name it.
    """
    from kabuild.toolchain.fetch.fetcher import Sources
    from kabuild.toolchain.fingerprint import hash_file
    from kabuild.toolchain.locking import lock_entry

    problems: list[KabuildError] = []
    with declared() as toolchains:
        before = toolchains.own_lock()
        wanted = toolchains.chosen(names)
        sources = Sources()
        entries = dict(before.entries) if names else _unread(before.entries, toolchains.broken)
        for declaration in wanted if names else filter(toolchains.is_own, wanted):
            kept = before.find(declaration)
            if kept is None or names or not _is_kept(kept, declaration):
                try:
                    kept = lock_entry(declaration, sources, toolchains.listings, hash_file)
                except ToolchainError as problem:
                    if names or not isinstance(declaration.pin, LocalTree):
                        problems.append(problem)
                    else:
                        click.echo(f"not locked: {problem.message}", err=True)
            if kept is not None:
                entries[str(declaration.label)] = kept
        toolchains.write(before.entries, entries)
    _say_changes(before.entries, entries)
    _fail(problems)


@command.command("pin")
@click.argument("name")
@click.option(
    "--from",
    "home",
    type=InputPath(exists=True, file_okay=False),
    help="The installed directory, such as /opt/rocm.",
)
@click.option(
    "--path", "paths", multiple=True, help="A part of the directory to pin.  [default: all of it]"
)
def pin(*, name: str, home: Path | None, paths: tuple[str, ...]) -> None:
    """Use an installed directory as a toolchain, pinned by its content.

    \b
    kabuild toolchain pin nvcc --from /usr/local/cuda
    kabuild toolchain pin sanitizer --from /opt/cuda --path compute-sanitizer

    It must hold the files that the declaration requires. If a file changes later, builds fail
    and name it. 'kabuild toolchain lock NAME' undoes this.
    """
    from kabuild.toolchain.fingerprint import hash_file
    from kabuild.toolchain.locking import adopt

    with declared() as toolchains:
        declaration = toolchains.find(name)
        tree = _adopted(declaration, home, paths)
        entry = adopt(declaration, tree, toolchains.listings, hash_file)
        before = toolchains.own_lock().entries
        toolchains.write(before, {**before, str(declaration.label): entry})
    click.echo(f"{declaration.label.short} is {tree.home}, sha256:{entry.tree}")


@command.command("verify")
@click.argument("names", nargs=-1)
def verify(*, names: tuple[str, ...]) -> None:
    """List files of toolchains that differ from their pins.

    \b
    kabuild toolchain verify nvcc

    Reads all files again. Exits with 45 when a file differs, else with 36 when a toolchain that
    you name is missing or still to be fetched.
    """
    bad = missing = False
    with declared() as toolchains:
        for declaration in toolchains.chosen(names):
            with said_when_slow(f"reading all files of {declaration.label.short}"):
                lines, state = _verified(declaration, toolchains)
            click.echo(f"{declaration.label.short}: {state}")
            for line in lines:
                click.echo(f"  {line}")
            bad |= bool(lines)
            missing |= bool(names) and state.startswith(_NOT_THERE)
    if bad or missing:
        raise click.exceptions.Exit(int(ExitCode.TOOLCHAIN_DRIFT if bad else ExitCode.ENVIRONMENT))


def _fail(problems: Sequence[KabuildError]) -> None:
    """Print all problems, if any, and exit with the code of the first."""
    for problem in problems:
        click.echo(f"{in_colour('error', 'red')}: {problem}", err=True)
    if problems:
        raise click.exceptions.Exit(int(problems[0].exit_code))


def _verified(declaration: Declaration, toolchains: ToolchainContext) -> tuple[list[str], str]:
    """The problems of a toolchain, line by line, and one word about it."""
    from kabuild.toolchain.verification import differences

    try:
        lines = differences(declaration, toolchains.rereading)
    except DriftError as error:
        return [error.message, *error.hint.splitlines()], State.DRIFTED.value
    except ToolchainError as error:
        return [], f"{State.MISSING.value}, {error.message}"
    if lines is None:
        return [], f"{State.TO_FETCH.value}: kabuild toolchain fetch {declaration.label.short}"
    if (adoption := toolchains.resolver.adoption(declaration)) and adoption[1] is None:
        return [], f"not pinned yet: kabuild toolchain pin {declaration.label.short}"
    again = f"to get it again: kabuild toolchain fetch --force {declaration.label.short}"
    fetched = isinstance(declaration.pin, Fetched)
    return (lines + [again] * fetched, State.DRIFTED.value) if lines else ([], "as pinned")


def _adopted(declaration: Declaration, home: Path | None, paths: tuple[str, ...]) -> LocalTree:
    """The tree to adopt as a toolchain."""
    declared_pin = declaration.pin
    if not isinstance(declared_pin, LocalTree | Fetched):
        raise UsageError(
            Reason.BAD_FLAG,
            f"{declaration.label.short} belongs to the running Python; "
            "a directory cannot replace it",
            hint=f"kabuild toolchain lock {declaration.label.short}",
        )
    usual = declared_pin if isinstance(declared_pin, LocalTree) else LocalTree("")
    if home is None and not usual.home:
        raise UsageError(
            Reason.BAD_FLAG,
            f"{declaration.label.short} is downloaded: name a directory to use instead of it",
            hint=f"kabuild toolchain pin {declaration.label.short} --from DIRECTORY",
        )
    where = _absolute(home) if home else Path(usual.home)
    for path in paths:
        if path.startswith("/") or ".." in path.split("/") or not is_there(where, path):
            raise UsageError(Reason.BAD_FLAG, f"--path: there is no '{path}' in {where}")
    parts = tuple(dict.fromkeys(map(os.path.normpath, paths)))  # a shell completes 'bin/'
    if "." in parts:
        parts = ()
    tree = LocalTree(str(where), parts if paths else usual.paths)
    if home and (missing := lacking(home, declaration.requires, tree.paths)):
        raise UsageError(
            Reason.BAD_FLAG,
            f"--from: {not_whole(declaration, home, missing, tree.paths)}",
            hint=_leads_to(declaration, home),
        )
    return tree


def _leads_to(declaration: Declaration, home: Path) -> str:
    """A hint, if the directory holds wrappers: the installation whose programs they call."""
    for path in (path for either in declaration.requires for path in either.split("|")):
        real = installation(home / path, declaration.requires)
        if real is not None and real != home:
            label = declaration.label.short
            command = f"kabuild toolchain pin {label} --from {shlex.quote(str(real))}"
            return f"{home / path} leads to {real}: {command}"
    return ""


def _absolute(home: Path) -> Path:
    """An absolute path that keeps links, so that a link may point elsewhere later."""
    return home.resolve() if ".." in home.parts else home.absolute()


def _unread(entries: Mapping[str, LockEntry], packages: Collection[str]) -> dict[str, LockEntry]:
    """The lock entries of packages that could not be loaded."""
    return {text: entry for text, entry in entries.items() if Label.parse(text).package in packages}


def _is_kept(entry: LockEntry, declaration: Declaration) -> bool:
    """Whether an entry stays as it is, since its declaration has not changed."""
    fixed = isinstance(declaration.pin, Fetched | LocalTree)
    return fixed and (is_current(entry, declaration) or is_adopted(entry, declaration))


def _say_changes(before: Any, after: Any) -> None:
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    for name in changed:
        verb = "locked" if name in after else "dropped"
        click.echo(f"{verb} {name}")
    click.echo(f"{LOCK_FILE}: {len(after)} toolchains, {len(changed)} changed")


def _row(item: Item) -> tuple[str, ...]:
    state = item.state.value
    if item.state is State.TO_FETCH:
        state = f"{state} {megabytes(item.size)}"
    return (
        item.declaration.label.short,
        item.declaration.role,
        _joined(item.declaration.platforms) or "all",
        item.kind,
        item.version,
        state,
    )


def _plain(item: Item) -> dict[str, Any]:
    toolchain = item.toolchain
    return {
        "name": item.declaration.label.short,
        "role": item.declaration.role,
        "doc": item.declaration.doc,
        "platforms": list(item.declaration.platforms),
        "kind": item.kind,
        "version": item.version,
        "state": item.state.value,
        "fetch_bytes": item.size,
        "digest": Digest.of(toolchain.fingerprint).hash if toolchain else "",
        "fingerprint": toolchain.fingerprint.decode().strip() if toolchain else "",
        "home": toolchain.home if toolchain else "",
    }


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)
