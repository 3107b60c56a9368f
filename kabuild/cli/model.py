"""``kabuild model``: from a user's model to faster kernels in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from kabuild.base.errors import ExitCode
from kabuild.base.fs import atomic_write
from kabuild.base.printing import escaped
from kabuild.builder import Builder
from kabuild.cli.completion import complete_agents
from kabuild.cli.flags import KeyFlags, RunFlags, SaltFlags, WhereFlags
from kabuild.cli.model_optimise import command as optimise
from kabuild.cli.null_build import style
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.outputs import check_no_source
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.session import builder
from kabuild.cli.types import COUNT, SAMPLES, InputPath, OutputFile, say_of, unwritable
from kabuild.loading.request import Request
from kabuild.neural.compiled import compiled_of, render_compiled
from kabuild.neural.extract import chosen, destination, extract, profile_of
from kabuild.neural.profile import render_profile
from kabuild.neural.running import read_model
from kabuild.neural.training import has_loss
from kabuild.sandbox import Spawner


@click.group("model")
def command() -> None:
    """Find out where a model's time goes, make its parts tasks, and put solutions in.

    \b
    kabuild model profile tasks/models/llama_tiny.py
    kabuild model profile my_model.py -o profile.html
    kabuild model extract my_model.py --top=5 -o tasks/my_model
    kabuild model optimise tasks/my_model --agent=claude_code --budget=4h
    kabuild model verify tasks/my_model --agent=optimised

    A model file defines build(), which returns a torch.nn.Module with random weights, and
    inputs(generator), which returns a tuple of tensors: one call's arguments. With
    loss(result, *arguments), 'verify' also compares training steps.
    """


command.add_command(optimise)


@dataclass(frozen=True, kw_only=True)
class ProfileFlags(WhereFlags, KeyFlags, RunFlags, JsonFlags):
    """The options of ``kabuild model profile``."""

    file: Path = argument(type=InputPath(plain=True), metavar="MODEL.py")
    top: int = flag(
        "--top",
        type=COUNT,
        default=20,
        metavar="N",
        help="Parts to list.  [default: 20]",
    )
    output: Path | None = flag(
        "--output", "-o", type=OutputFile(), help="Also write a page with a flame graph."
    )
    compiled: bool = flag(
        "--compiled/--nocompiled",
        default=False,
        help="Also profile the model after torch.compile.  [default: no]",
    )


@command.command("profile", context_settings={"show_default": False})
@takes(ProfileFlags)
def profile(options: ProfileFlags) -> None:
    """Show where a model's time goes.

    Runs the model in a sandbox and times its operators. A part is one operator, or a group of
    operators that one kernel could compute.

    \b
    kabuild model profile my_model.py
    kabuild model profile my_model.py --compiled
    kabuild model profile my_model.py --platform=cpu --json
    """
    check_no_source("--output", options.output)
    model = read_model(options.file)
    with _warm() as builds:
        found = profile_of(model, options.request(), builds)
        made = compiled_of(model, options.request(), builds) if options.compiled else None
    if options.output:
        from kabuild.neural.page import render_page

        _write(options.output, render_page(found, model.name, made))
    if options.as_json:
        told = {"compiled": made.to_json()} if made else {}
        click.echo(json.dumps({**found.facts, **told}, sort_keys=True))
    else:
        click.echo(escaped(render_profile(found, model.name, options.top)))
        if made:
            click.echo(escaped(f"\n{render_compiled(made, options.top)}"))


@dataclass(frozen=True, kw_only=True)
class ExtractFlags(WhereFlags, SaltFlags, KeyFlags, RunFlags, JsonFlags):
    """The options of ``kabuild model extract``."""

    file: Path = argument(type=InputPath(plain=True), metavar="MODEL.py")
    output: Path = flag(
        "--output",
        "-o",
        type=InputPath(file_okay=False),
        required=True,
        metavar="DIRECTORY",
        help="Where to write the tasks, in the workspace.",
    )
    top: int = flag(
        "--top",
        type=COUNT,
        default=10,
        metavar="N",
        help="Take the N parts that take most of the time.  [default: 10]",
    )
    part: tuple[str, ...] = flag(
        "--part", multiple=True, metavar="NAME", help="Take this part instead; may be repeated."
    )
    samples: int | None = flag(
        "--samples",
        type=SAMPLES,
        metavar="N",
        help="Sampled configs on which 'validate' tries each task.  [default: 200]",
    )

    def refine(self, request: Request) -> Request:
        """Add the number of samples."""
        return super().refine(replace(request, samples=self.samples))


@command.command("extract", context_settings={"show_default": False})
@takes(ExtractFlags)
def extract_(options: ExtractFlags) -> None:
    """Write the parts of a model that take most of the time as tasks.

    A task has the model's own shapes as configs, PyTorch as its reference and baseline, and
    values distributed as in the model. Tasks that 'kabuild validate' does not admit are removed.
    The task 'whole' is the model itself, and 'step' a training step if the file has a loss.

    \b
    kabuild model extract my_model.py --top=5 -o tasks/my_model

    Exits with 0 when a task was written, 3 when none was admitted, 36 when the machine failed.
    """
    model, request = read_model(options.file), options.request()
    destination(options.output, request)  # before anything runs
    with _warm() as builds:
        rows = chosen(profile_of(model, request, builds), options.top, options.part)
        found = extract(model, rows, options.output, request, builds)
    code = found.summary.exit_code
    if code is ExitCode.TESTS_FAILED and found.admitted:
        code = ExitCode.OK
    if options.as_json:
        told = {
            "package": f"//{found.package}",
            "admitted": [row.name for row in found.admitted],
            "left_out": found.left_out,
        }
        click.echo(json.dumps(told, sort_keys=True))
    else:
        for row in found.admitted:
            click.echo(escaped(f"//{found.package}/{row.name}  {row.share:.1%} of the time"))
        for name, why in found.left_out.items():
            click.echo(escaped(f"{name} left out: {why}"))
        click.echo(escaped(f"//{found.package}/whole  the model itself"))
        if has_loss(model.text.decode()):
            click.echo(escaped(f"//{found.package}/step  a training step, without the optimiser"))
            click.echo("parts of the backward pass cannot be extracted as tasks")
    raise click.exceptions.Exit(int(code))


@dataclass(frozen=True, kw_only=True)
class VerifyFlags(WhereFlags, SaltFlags, KeyFlags, RunFlags, JsonFlags):
    """The options of ``kabuild model verify``."""

    directory: Path = argument(type=InputPath(), metavar="DIRECTORY")
    agent: str | None = flag(
        "--agent",
        metavar="NAME",
        shell_complete=complete_agents,
        help="The agent whose solutions are used.  [default: WORKSPACE.toml's, or expert]",
    )
    leave_out: bool = flag(
        "--leave_out/--noleave_out",
        default=True,
        help="Also judge the model without each kernel.  [default: yes]",
    )

    def refine(self, request: Request) -> Request:
        """Add the agent."""
        return super().refine(replace(request, agent=self.agent))


@command.command("verify", context_settings={"show_default": False})
@takes(VerifyFlags)
def verify_(options: VerifyFlags) -> None:
    """Put passing solutions into a model, and judge the whole.

    Judges the tasks that 'kabuild model extract' wrote, puts the solutions that pass into the
    model, and compares it with the model's own code in double precision, on fresh arguments and
    weights. Times it against the model's own code, eager and after torch.compile, and without each
    kernel.

    \b
    kabuild model verify tasks/my_model --agent=claude_code

    Exits with 0 when the model passes, 3 when it does not or no part has a passing solution,
    36 when the machine failed.
    """
    from kabuild.neural.verify import render, verify

    with _warm() as builds:
        found = verify(options.directory, options.request(), builds, alone=not options.leave_out)
    if options.as_json:
        click.echo(json.dumps(found.to_json(), sort_keys=True))
    else:
        click.echo(escaped(render(found, style())))
    codes = {summary.exit_code for summary in found.summaries}
    broken = codes & {ExitCode.ENVIRONMENT, ExitCode.INTERRUPTED}
    code = ExitCode.OK if found.passed else ExitCode.TESTS_FAILED
    raise click.exceptions.Exit(int(next(iter(broken), code)))


@contextmanager
def _warm() -> Iterator[Builder]:
    """A builder for several builds, between which interpreters stay warm."""
    with builder() as builds, Spawner() as spawner:
        yield replace(builds, spawner=spawner)


def _write(path: Path, text: str) -> None:
    try:
        atomic_write(path, text.encode())
    except OSError as error:
        raise unwritable("--output", path, error) from None
    say_of(path, f"{path}: written")
