"""``kabuild model``: from a user's model to faster kernels in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click

from kabuild.base.fs import atomic_write
from kabuild.base.printing import escaped
from kabuild.cli.flags import KeyFlags, RunFlags, WhereFlags
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.session import builder
from kabuild.cli.types import COUNT, InputPath, OutputFile, say_of, unwritable
from kabuild.neural.profile import Profile, render_profile
from kabuild.neural.running import ModelFile, read_model, run_tool, unreadable


@click.group("model")
def command() -> None:
    """Find out where a model's time goes, and make its parts tasks.

    \b
    kabuild model profile tasks/models/llama_tiny.py
    kabuild model profile my_model.py -o profile.html

    A model file defines build(), which returns a torch.nn.Module with random weights, and
    inputs(generator), which returns a tuple of tensors: one call's arguments.
    """


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


@command.command("profile", context_settings={"show_default": False})
@takes(ProfileFlags)
def profile(options: ProfileFlags) -> None:
    """Show where a model's time goes, and what faster kernels would gain.

    Runs the model in a sandbox and times its operators. A part is one operator, or a group of
    operators that one kernel could compute.

    \b
    kabuild model profile my_model.py
    kabuild model profile my_model.py --platform=cpu --json
    """
    model = read_model(options.file)
    with builder() as builds:
        answer = run_tool("model_profile", model, {}, options.request(), builds)
    found = _profile(model, answer.facts)
    if options.output:
        from kabuild.neural.page import render_page

        _write(options.output, render_page(found, model.name))
    if options.as_json:
        click.echo(json.dumps(found.facts, sort_keys=True))
    else:
        click.echo(escaped(render_profile(found, model.name, options.top)))


def _profile(model: ModelFile, facts: object) -> Profile:
    try:
        return Profile.read(facts)  # type: ignore[arg-type]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise unreadable(model, error) from None


def _write(path: Path, text: str) -> None:
    try:
        atomic_write(path, text.encode())
    except OSError as error:
        raise unwritable("--output", path, error) from None
    say_of(path, f"{path}: written")
