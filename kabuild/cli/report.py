"""``kabuild report``: evaluations side by side, as a page or as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import ExitCode, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.cli.evaluations import evaluated, is_file, read_file
from kabuild.cli.flags import build_flags, read_gates
from kabuild.cli.test import request_fields
from kabuild.loading import find_workspace
from kabuild.loading.request import Request
from kabuild.model.event import Warned
from kabuild.model.result import Outcome
from kabuild.report.arena import write_arena
from kabuild.report.document import render_csv, render_json, render_markdown
from kabuild.report.evaluation import Evaluation, TaskResult
from kabuild.report.progress import make_progress
from kabuild.store import Store

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
    files = [text for text in shared["patterns"] if is_file(text)]
    patterns = [text for text in shared["patterns"] if text not in files]
    names = [name for name in agents.split(",") if name] or [shared["agent"]]
    sink = make_progress(SystemClock())
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        found = [read_file(text, store) for text in files]
        if patterns:
            fields = request_fields(shared) | {"patterns": tuple(patterns)}
            requests = [Request(gates=gates, **(fields | {"agent": name})) for name in names]
            found += [evaluated(request, store, sink) for request in requests]
    if form == "arena":
        _write_runs(_distinct(found), output)
    else:
        _write(_renderer(form, title)(_distinct(found)), form, output)
    words = {
        said.get("verdict") for item in found for r in item.results for said in r.gates.values()
    }
    if Outcome.INFRA.value.upper() in words:
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


def _write_runs(evaluations: Sequence[Evaluation], output: Path | None) -> None:
    """A run directory; where there are several evaluations, one for each below it."""
    if output is None:
        raise UsageError(
            Reason.BAD_FLAG, "--format=arena writes a directory", hint="name it: --output=DIR"
        )
    for item in evaluations:
        directory = output / item.name if len(evaluations) > 1 else output
        try:
            write_arena(item, directory)
        except OSError as error:
            raise UsageError(Reason.BAD_FLAG, f"--output: {error.strerror}: {output}") from None
    click.echo(str(output))


def _broken(result: TaskResult) -> bool:
    infra = Outcome.INFRA.value.upper()
    return any(said.get("verdict") == infra for said in result.gates.values())


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


def _distinct(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """With a number behind names that occur again."""
    seen: dict[str, int] = {}
    named = []
    for item in evaluations:
        seen[item.name] = seen.get(item.name, 0) + 1
        again = seen[item.name]
        named.append(replace(item, name=f"{item.name} ({again})") if again > 1 else item)
    return named
