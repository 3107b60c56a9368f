"""``kabuild import``: tasks of other benchmarks as targets of an external repository."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from kabuild.base.errors import ExitCode, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.listing import abridged, counted
from kabuild.base.printing import in_line
from kabuild.cli.flags import KeyFlags, RunFlags
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.prove import prove
from kabuild.cli.session import builder
from kabuild.imports.adapter import Adapter, find_adapter
from kabuild.imports.capture import Captured, capture
from kabuild.imports.checkout import Declared, declare_repository, other_commit
from kabuild.imports.lock_text import differences
from kabuild.loading import Loader, find_workspace, load_workspace
from kabuild.loading.import_lock import LockedTask
from kabuild.loading.repository import Repository
from kabuild.loading.roots import WORKSPACE_FILE
from kabuild.loading.workspace import Workspace
from kabuild.model.label import Label, Pattern, repository_of


@dataclass(frozen=True, kw_only=True)
class ImportFlags(KeyFlags, RunFlags):
    """The options of ``kabuild import``."""

    what: tuple[str, ...] = argument(nargs=-1, required=True, metavar="ADAPTER PATH | @NAME...")
    name: str | None = flag(
        "--name",
        metavar="NAME",
        help="Its name in labels.  [default: the adapter's name]",
    )
    check: bool = flag("--check", is_flag=True, help="Capture again and compare; write nothing.")
    proving: bool = flag(
        "--prove",
        is_flag=True,
        help="Prove that tasks mean what their originals do: same inputs, same answers.",
    )
    listing: bool = flag(
        "--list", is_flag=True, help="List all tasks: imported, or the reason why not."
    )


@click.command("import")
@takes(ImportFlags)
def command(options: ImportFlags) -> None:
    """Import the tasks of another benchmark from a checkout of it.

    Adds a [[repository]] to WORKSPACE.toml, runs each task once in a sandbox to learn what it
    is, and writes imports/NAME.lock.toml. No file of the benchmark is copied.

    \b
    kabuild import kernelbench ../KernelBench
    kabuild import @kernelbench
    kabuild import --check @kernelbench
    kabuild import --list @kernelbench//level1/...
    kabuild import --prove @kernelbench//level1/...

    With --check, exits with 3 when a lock is stale; with --prove, when a task differs.
    """
    root = find_workspace(Path.cwd())
    if options.listing:
        for text in options.what:
            _list(root, text)
    elif options.proving:
        for name in _names(options.what):
            _repository(root, name)
        raise click.exceptions.Exit(prove(options.what, options.request()))
    elif options.check:
        for text in options.what:
            if "//" in text:
                _tasks(root, text)  # raises if it covers none
        stale = [name for name in _names(options.what) if not _is_current(root, name, options)]
        raise click.exceptions.Exit(int(ExitCode.TESTS_FAILED if stale else ExitCode.OK))
    else:
        _import(root, options)


def _import(root: Path, options: ImportFlags) -> None:
    """Import a checkout, or again what the workspace has as ``@NAME``."""
    first, *rest = options.what
    if all(text.startswith("@") and "/" not in text for text in options.what):
        if options.name:
            what = f"--name is for a new import, and '{first}' has a name"
            raise UsageError(Reason.BAD_FLAG, what)
        for name in _names(options.what):
            known = _repository(root, name)
            declared = declare_repository(root, name, known.adapter, known.path)
            _write(declared, find_adapter(root, known.adapter), options)
        return
    adapter = None if first.startswith("@") else find_adapter(root, first)
    if adapter is None or len(rest) != 1:
        such = first if adapter else "kernelbench"
        raise UsageError(
            Reason.BAD_FLAG,
            f"expected an adapter and a path, or @NAME, got '{' '.join(options.what)}'",
            hint=f"such as: kabuild import {such} ../{such}",
        )
    name, checkout = options.name or first, _checkout(rest[0])
    _write(declare_repository(root, name, first, checkout), adapter, options)


def _write(declared: Declared, adapter: Adapter, options: ImportFlags) -> None:
    """Write the lock of a repository, then declare it."""
    repository = declared.repository
    lock = declared.workspace.root / repository.lock
    captured = _capture(declared.workspace, repository, adapter, options)
    before = _text(lock)
    changed = captured.text != before
    if changed:
        lock.parent.mkdir(exist_ok=True)
        atomic_write(lock, captured.text.encode())
    declared.write()
    _tell(repository, adapter, captured)
    if declared.before:
        was, now = declared.before[:12], repository.commit[:12]
        click.echo(f"{WORKSPACE_FILE}: commit {was} is {now} now")
    click.echo(f"{repository.lock}: {'written' if changed else 'unchanged'}")
    for line in differences(before, captured.text) if before else ():
        click.echo(f"  {line}")


def _text(lock: Path) -> str:
    return lock.read_bytes().decode(errors="replace") if lock.is_file() else ""


def _checkout(text: str) -> Path:
    """A directory as it was typed. Raises UsageError for an invalid path."""
    if not text:
        raise UsageError(Reason.BAD_FLAG, "the path of the checkout is empty")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(Reason.BAD_FLAG, f"'{text}' cannot be followed: {error}") from None


def _is_current(root: Path, name: str, options: ImportFlags) -> bool:
    repository = _repository(root, name)
    adapter = find_adapter(root, repository.adapter)
    workspace = load_workspace(root)
    known = Loader(workspace).external.lock(name)  # raises for an invalid one
    if found := other_commit(repository):
        click.echo(f"{repository.lock}: stale\n  update it: kabuild import @{name}")
        wanted = f"{WORKSPACE_FILE} has {repository.commit[:12]}"
        click.echo(in_line(f"  {repository.shown} is at commit {found[:12]}, {wanted}"))
        return False
    captured = _capture(workspace, repository, adapter, options)
    before = _text(root / repository.lock)
    if captured.text == before:
        click.echo(f"{repository.lock}: up to date")
        return True
    click.echo(f"{repository.lock}: stale\n  update it: kabuild import @{name}")
    for line in differences(before, captured.text):
        click.echo(f"  {line}")
    for task in sorted(captured.left_out.keys() & {*known.names()}):
        absent = captured.left_out[task]
        click.echo(f"  no longer imported: {task}: {absent.reason}  {absent.why}")
    return False


def _capture(
    workspace: Workspace, repository: Repository, adapter: Adapter, options: ImportFlags
) -> Captured:
    request = replace(options.request(), judge=False, keep_going=True)
    with builder() as builds:
        return capture(workspace, repository, adapter, request, builds)


def _tell(repository: Repository, adapter: Adapter, captured: Captured) -> None:
    total = captured.imported + len(captured.left_out)
    terms = adapter.terms
    passed_on = "may" if terms.redistribute else "may not"
    click.echo(f"@{repository.name}: {captured.imported} of {total} tasks imported")
    click.echo(f"  licence: {in_line(terms.licence)}; bundles {passed_on} include its files")
    if not _has_licence(repository.path):
        said = f"that of {repository.adapter} as it is published; this checkout has no licence file"
        click.echo(f"  {said}: look before you publish its files")
    if terms.note:
        click.echo(f"  {in_line(terms.note)}")
    for reason, count in sorted(captured.classes.items()):
        click.echo(f"  left out: {count} {reason}")
    if captured.changed:
        click.echo(
            f"warning: not as in commit {captured.commit[:12]}: "
            f"{counted(len(captured.changed), 'file')}, {in_line(abridged(captured.changed))}\n"
            "  the lock has them as they are now; commit them, for whoever uses it needs the same",
            err=True,
        )
    if captured.left_out:
        click.echo(f"  each with its reason: kabuild import --list @{repository.name}")


def _has_licence(checkout: Path) -> bool:
    return any(file for mark in ("LICEN[CS]E*", "COPYING*") for file in checkout.glob(mark))


def _list(root: Path, text: str) -> None:
    """Print the tasks of ``@NAME``, or those that a pattern covers."""
    (name,) = _names((text,))
    for task in _tasks(root, text):
        absent = task.left_out
        said = f"{absent.reason}  {absent.why}" if absent else "imported"
        click.echo(f"@{name}//{task.name}  {said}")


def _tasks(root: Path, text: str) -> list[LockedTask]:
    """The tasks of ``@NAME``, or those that a pattern covers. Raises UsageError if it has none."""
    (name,) = _names((text,))
    _repository(root, name)
    every = [*Loader(load_workspace(root)).external.lock(name).tasks()]
    if "//" not in text:
        return every
    wanted = Pattern.parse(text)
    covered = [task for task in every if wanted.covers(Label.parse(f"@{name}//{task.name}"))]
    if not covered:
        hint = f"all of them: kabuild import --list @{name}"
        raise UsageError(Reason.UNKNOWN_PACKAGE, f"no task '{text}'", hint=hint)
    return covered


def _repository(root: Path, name: str) -> Repository:
    Loader(load_workspace(root))
    known = load_workspace(root).repositories
    if name not in known:
        others = ", ".join(f"@{other}" for other in known)
        hint = f"known: {others}" if known else "to add one: kabuild import ADAPTER PATH"
        raise UsageError(Reason.UNKNOWN_PACKAGE, f"no repository '@{name}'", hint=hint)
    return known[name]


def _names(texts: tuple[str, ...]) -> list[str]:
    """The repositories of names and patterns such as ``@kernelbench`` and ``@kernelbench//...``."""
    names = []
    for text in texts:
        name = text.removeprefix("@") if "//" not in text and text.startswith("@") else ""
        name = name or repository_of(Pattern.parse(text).package)
        if not name:
            raise UsageError(
                Reason.BAD_FLAG, f"'{text}' is not an external repository", hint="write @NAME"
            )
        names.append(name)
    return list(dict.fromkeys(names))
