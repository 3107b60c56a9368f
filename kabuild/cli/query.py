"""``kabuild query``: lists targets and their dependencies."""

from __future__ import annotations

from pathlib import Path

import click

from kabuild.analysis.query import query, query_labels
from kabuild.analysis.query_format import FORMATS, LABELS, format_label
from kabuild.cli.completion import complete_query
from kabuild.loading import Loader, find_workspace, load_workspace
from kabuild.loading.workspace import DEFAULT_AGENT


@click.command("query")
@click.argument("expression", nargs=-1, required=True, shell_complete=complete_query)
@click.option(
    "--output",
    type=click.Choice([LABELS, *FORMATS]),
    default="label",
    show_default=True,
    help="Output format.",
)
def command(*, expression: tuple[str, ...], output: str) -> None:
    """Query targets and their dependencies.

    \b
    kabuild query //tasks/...
    kabuild query 'deps(//tasks/hip2hip/softmax)'
    kabuild query 'rdeps(//..., //toolchains/zig)'
    kabuild query @kernelbench//level1/...
    kabuild query 'kind(hip2hip, //...) except attr(tags, reduction, //...)'
    """
    workspace = load_workspace(find_workspace(Path.cwd()))
    loader = Loader(workspace)
    asked, here = " ".join(expression), workspace.package_of(Path.cwd())
    agent = workspace.agent_label(workspace.agent or DEFAULT_AGENT)
    if output == LABELS:
        text = format_label(query_labels(loader, asked, package=here, agent=agent))
    else:
        text = FORMATS[output](query(loader, asked, package=here, agent=agent))
    for note in (*loader.left_out.values(), *loader.notes.values()):
        click.echo(f"warning: {note}", err=True)
    if text:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        click.echo("no target matches", err=True)
