"""``kabuild new``: a task or an agent to start from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.loading import find_workspace
from kabuild.scaffold import TASKS, families, new_agent, new_task

_TO_BE_WRITTEN = "torch2hip"
"""The family whose kernel is a skeleton, which fails until it is written."""


@click.group("new")
def command() -> None:
    """Add a task or an agent to the workspace.

    \b
    kabuild new task hip2hip/my_kernel
    kabuild new agent my_agent
    """


@command.command("task")
@click.argument("name", metavar="FAMILY/NAME")
def task(*, name: str) -> None:
    """Add a task that passes: SiLU. Replace it with your own kernel.

    \b
    kabuild new task hip2hip/my_kernel         make a HIP kernel faster
    kabuild new task triton2triton/my_kernel   make a Triton kernel faster
    kabuild new task torch2hip/my_kernel       write PyTorch code in HIP
    kabuild new task call/my_module            make a Python module faster
    """
    workspace = find_workspace(Path.cwd())
    family, slash, short = name.removeprefix(f"//{TASKS}/").partition("/")
    if not slash:
        raise UsageError(
            Reason.BAD_LABEL,
            f"'{name}' has no family",
            hint=f"write FAMILY/NAME; families: {', '.join(families(workspace))}",
        )
    written = new_task(workspace, family, short)
    say_written(written)
    test = f"kabuild test //{TASKS}/{family}/{short}"
    if family == _TO_BE_WRITTEN:
        kernel = next(path for path in written if path.suffix == ".hip")
        click.echo(f"write the kernel, then judge it with: {test} --solution={_shown(kernel)}")
    else:
        click.echo(f"judge it with: {test} --agent=none")


@command.command("agent")
@click.argument("name")
def agent(*, name: str) -> None:
    """Declare an agent: a program that rewrites kernels.

    \b
    kabuild new agent my_agent
    """
    workspace = find_workspace(Path.cwd())
    say_written(new_agent(workspace, name))
    tasks = sorted((workspace / TASKS).glob("*/*/BUILD.toml"))
    task = tasks[0].parent.relative_to(workspace).as_posix() if tasks else f"{TASKS}/..."
    click.echo(f"try it with: kabuild test //{task} --agent=//agents:{name}")


def say_written(files: Iterable[Path]) -> None:
    """List what was written, as people would open it."""
    for file in files:
        click.echo(f"wrote {_shown(file)}")


def _shown(file: Path) -> Path:
    """A path relative to the working directory."""
    try:
        return file.resolve().relative_to(Path.cwd())
    except ValueError:
        return file
