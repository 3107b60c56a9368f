"""``kabuild init``: a workspace to start from."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from kabuild.base.printing import in_line
from kabuild.cli.new import say_written
from kabuild.cli.types import InputPath
from kabuild.loading.roots import WORKSPACE_FILE
from kabuild.scaffold import new_task, new_workspace

_FIRST = ("hip2hip", "silu")


@click.command("init")
@click.argument("directory", type=InputPath(file_okay=False), default=".")
def command(*, directory: Path) -> None:
    """Make a workspace with a first task in it.

    \b
    kabuild init my_kernels
    kabuild init                # in this directory
    """
    if ".." in directory.parts:  # which leads nowhere from what does not exist yet
        directory = Path(os.path.relpath(os.path.realpath(directory)))
    written = new_workspace(directory)
    if not (directory / "tasks").exists():
        written += new_task(directory, *_FIRST)
    say_written(written)
    enter = "" if directory.resolve() == Path.cwd() else f"cd {shlex.quote(str(directory))} && "
    click.echo(f"judge its tasks with: {enter}kabuild test //...")
    above = directory.resolve().parents
    if outer := next((one for one in above if (one / WORKSPACE_FILE).is_file()), None):
        click.echo(in_line(f"it is apart from the workspace around it, {outer}"), err=True)
