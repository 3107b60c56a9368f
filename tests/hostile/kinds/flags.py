"""Every flag and argument of every command, as click knows them: new ones come by themselves."""

from __future__ import annotations

import signal
from dataclasses import replace
from functools import cache

import click

from kabuild.cli.program import cli
from tests.hostile.draw import LABELS, NUMBERS, PATHS, Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind

_ENDLESS = {"watch"}
"""Commands that go on until they are told to stop."""
_STOP = (int(signal.SIGINT), 1.5)

_GATES = (
    "compile",
    "correctness",
    "perf,unseen",
    "+sanitize",
    "-perf",
    "+retention,-unseen",
    "score",
)
_WORDS = {
    "gates": _GATES,
    "gate": _GATES,
    "platform": ("cpu", "cuda", "cuda:sm_90", "rocm:gfx942", "cpu:x", ":", "cuda:", "CPU"),
    "agent": (
        "expert",
        "none",
        "mine",
        "//toolchains/agents:expert",
        "//tasks/family0/t0",
        "tuner",
    ),
    "agents": ("expert,none", "none", ",", "mine,mine"),
    "config": ("quick", "ci", ""),
    "policy": ("aka", "aka-v4", "fast_p", "geomean"),
    "expression": ("deps(//...)", "kind(copied, //...)", "//tasks/family0/t0"),
    "test_tag_filters": ("a,-b", "-manual", ",,"),
    "agent_rerun": ("1", "last", "0"),
    "max_size": ("0", "1K", "5G"),
    "name": ("python", "zig", "nvcc", "//toolchains/zig"),
    "names": ("python", "zig", "nvcc"),
}


@cache
def commands() -> tuple[tuple[tuple[str, ...], click.Command], ...]:
    """All commands by the words that call them."""
    return tuple(_below(cli, ()))


def _below(
    command: click.Command, words: tuple[str, ...]
) -> list[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        return [(words, command)]
    found = []
    context = click.Context(command)
    for name in command.list_commands(context):
        part = command.get_command(context, name)
        assert part is not None
        found += _below(part, (*words, name))
    return found


def value(draw: Draw, parameter: click.Parameter) -> str:
    """A value for a parameter: mostly of its type, else whatever."""
    name = str(parameter.name)
    if draw.chance(0.25):
        return draw.text()
    if name in _WORDS and draw.chance(0.8):
        return draw.choice(_WORDS[name])
    if name in {"patterns", "expression"}:
        return draw.choice(LABELS)
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return str(draw.choice(list(kind.choices)))
    if isinstance(kind, click.Path):
        return draw.choice((*PATHS, "made", "out/made", "../outside/precious", "../outside/pipe"))
    if isinstance(kind, click.IntRange | click.types.IntParamType):
        return draw.choice(NUMBERS)
    return draw.choice((*PATHS, *LABELS, *NUMBERS))


def option(draw: Draw, parameter: click.Option) -> list[str]:
    """An option as somebody would type it."""
    name = draw.choice([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return [name] if draw.chance(0.95) else [f"{name}={draw.text()}"]
    text = value(draw, parameter)
    return [f"{name}={text}"] if draw.chance(0.8) and name.startswith("--") else [name, text]


def arguments(draw: Draw, command: click.Command) -> list[str]:
    """Arguments and options of a command."""
    options = [p for p in command.params if isinstance(p, click.Option)]
    found = [word for p in draw.some(options, 4) for word in option(draw, p)] if options else []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            count = draw.choice((0, 1, 1, 1, 2, 3)) if parameter.nargs == -1 else 1
            for _ in range(count):
                found.insert(draw.randint(0, len(found)), value(draw, parameter))
    if draw.chance(0.05):
        found.insert(draw.randint(0, len(found)), draw.text())
    return found


def play(draw: Draw, ground: Ground) -> None:
    """One call of some command."""
    words, command = draw.choice(commands())
    call = ground.call(*words, *arguments(draw, command))
    ground.run(replace(call, kill=_STOP) if words[0] in _ENDLESS else call)


KINDS = (Kind("flags", 3.0, play),)
