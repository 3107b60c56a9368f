"""``kabuild report``: evaluations side by side, as a page or as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import BundleError, ExitCode, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.bundle.archive import SUFFIX
from kabuild.cli.evaluations import evaluated, is_file, machine_failed, read_file
from kabuild.cli.flags import build_flags, read_gates
from kabuild.cli.test import request_fields
from kabuild.loading import find_workspace
from kabuild.loading.request import Request
from kabuild.loading.roots import BUILD_FILE
from kabuild.model.event import Warned
from kabuild.report.arena import RESULT, arena_runs, run_folders, write_arena
from kabuild.report.document import render_csv, render_json, render_markdown
from kabuild.report.evaluation import Evaluation
from kabuild.report.naming import by_agent, named_apart
from kabuild.report.progress import make_progress
from kabuild.store import Store

_READABLE = f"""results are: a bundle that kabuild publish wrote (*{SUFFIX});
a directory that --format=arena or AgentKernelArena wrote (<task>/{RESULT} in it,
or in each of several directories in it); tasks of this workspace, such as //tasks/..."""

FORMATS = ("html", "json", "csv", "md", "arena")


@click.command("report")
@build_flags
@click.option("--gates", default="", callback=read_gates, metavar="GATES", help="Only these gates.")
@click.option(
    "--agents", default="", metavar="NAMES", help="Several agents, side by side: none,expert."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="html",
    show_default=True,
    help="A page for people, or data.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="The file to write.  [default: out/report.html; data goes to stdout]",
)
@click.option("--title", default="Kernel evaluation", show_default=True)
def command(
    *,
    gates: tuple[str, ...],
    agents: str,
    form: str,
    output: Path | None,
    title: str,
    **shared: Any,
) -> None:
    """Show evaluations, side by side: of tasks of this workspace, and of bundles.

    \b
    kabuild report //tasks/...
    kabuild report //tasks/... --agents=none,expert -o compared.html
    kabuild report theirs.kab ours.kab --format=md
    kabuild report ./workspace_MI300X/run_1 //tasks/...      a run of AgentKernelArena
    kabuild report //tasks/... --format=arena -o run_ours

    What is cached is not judged again. The page needs no network and holds everything: verdicts,
    times with their intervals, differences between kernels, provenance. Exits with 0 whatever the
    verdicts are, and with 36 where the machine failed some gate.
    """
    files, patterns = _sorted_out(shared["patterns"])
    names = [name for name in agents.split(",") if name] or [shared["agent"]]
    sink = make_progress(SystemClock())
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        found = [_read(text, store) for text in files]
        if patterns:
            fields = request_fields(shared) | {"patterns": tuple(patterns)}
            requests = [Request(gates=gates, **(fields | {"agent": name})) for name in names]
            found += evaluated(requests, store, sink)
    found = named_apart(found)
    if form == "arena":
        _write_runs(found, output)
    else:
        _write(_renderer(form, title)(found), form, output)
    if machine_failed(found):
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


def _sorted_out(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Which arguments name files of results, each of them, and which name targets.

    Raises UsageError for a directory that holds neither.
    """
    files: list[str] = []
    patterns: list[str] = []
    for text in arguments:
        path = Path(text)
        if is_file(text):
            files.append(text)
        elif text.startswith(("//", "-", ":")) or not path.is_dir():
            patterns.append(text)
        elif runs := arena_runs(path):
            files += map(str, runs)
        elif (path / BUILD_FILE).is_file():
            patterns.append(text)
        else:
            raise UsageError(
                Reason.BAD_FLAG,
                f"{text} is a directory without results, and no package",
                hint=_READABLE,
            )
    return files, patterns


def _read(text: str, store: Store) -> Evaluation:
    """What a bundle or a run holds; errors name it, whoever found them. Raises KabuildError."""
    try:
        return by_agent(read_file(text, store), text)
    except BundleError as error:
        if error.message.startswith(str(Path(text))):
            raise
        raise BundleError(error.reason, f"{text}: {error.message}", hint=error.hint) from None


def _write_runs(evaluations: Sequence[Evaluation], output: Path | None) -> None:
    """A run directory; where there are several evaluations, one for each below it."""
    if output is None:
        raise UsageError(
            Reason.BAD_FLAG, "--format=arena writes a directory", hint="name it: --output=DIR"
        )
    for item, directory in zip(evaluations, run_folders(evaluations, output), strict=True):
        try:
            write_arena(item, directory)
        except OSError as error:
            raise UsageError(Reason.BAD_FLAG, f"--output: {error.strerror}: {output}") from None
    click.echo(str(output))


def _write(text: str, form: str, output: Path | None) -> None:
    if output is None and form == "html":
        output = find_workspace(Path.cwd()) / "out" / "report.html"
        output.parent.mkdir(exist_ok=True)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        atomic_write(output, text.encode())
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"--output: {error.strerror}: {output}") from None
    click.echo(str(output))


def _renderer(form: str, title: str) -> Callable[[Sequence[Evaluation]], str]:
    if form == "html":
        from kabuild.report.page.render import render_page

        return lambda evaluations: render_page(evaluations, title=title)
    return {"json": render_json, "csv": render_csv, "md": render_markdown}[form]
