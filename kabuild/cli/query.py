"""``kabuild query``: ask what targets there are and how they hang together."""

from __future__ import annotations

from pathlib import Path

import click

from kabuild.analysis.query import query
from kabuild.analysis.query_format import FORMATS
from kabuild.loading import Loader, find_workspace, load_workspace
from kabuild.pipeline import DEFAULT_AGENT


@click.command("query")
@click.argument("expression", nargs=-1, required=True)
@click.option(
    "--output",
    type=click.Choice(list(FORMATS)),
    default="label",
    show_default=True,
    help="How to print what was found.",
)
def command(*, expression: tuple[str, ...], output: str) -> None:
    """Ask what targets there are and how they depend on each other.

    \b
    kabuild query //tasks/...
    kabuild query 'deps(//tasks/hip2hip/softmax)'
    kabuild query 'rdeps(//..., //toolchains/zig)'
    kabuild query 'kind(hip2hip, //tasks/...) except attr(tags, reduction, //tasks/...)'
    """
    workspace = load_workspace(find_workspace(Path.cwd()))
    nodes = query(
        Loader(workspace),
        " ".join(expression),
        package=workspace.package_of(Path.cwd()),
        agent=workspace.agent_label(workspace.agent or DEFAULT_AGENT),
    )
    text = FORMATS[output](nodes)
    if text:
        click.echo(text, nl=not text.endswith("\n"))
