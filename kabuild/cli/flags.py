"""The flags that ``test`` and ``build`` share, and ``--config``, which stands for several."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.loading import find_workspace, load_workspace
from kabuild.model.options import GATES, MOST_TRIALS, ON_REQUEST

F = TypeVar("F", bound=Callable[..., Any])


def _apply_config(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> None:
    """Make the flags of ``[config.NAME]`` the defaults; flags on the command line win."""
    if not names or ctx.resilient_parsing:
        return
    workspace = load_workspace(find_workspace(Path.cwd()))
    defaults: dict[str, Any] = {}
    for name in names:
        defaults.update(_checked(ctx, name, workspace.config(name)))
    ctx.default_map = {**(ctx.default_map or {}), **defaults}


def _checked(ctx: click.Context, name: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    options = (param for param in ctx.command.params if isinstance(param, click.Option))
    known = {opt.removeprefix("--"): str(param.name) for param in options for opt in param.opts}
    for flag in flags:
        if flag not in known:
            hint = suggest(flag, known)
            raise UsageError(
                Reason.BAD_FLAG,
                f"[config.{name}] sets unknown flag '{flag}' of kabuild {ctx.command.name}",
                hint=hint,
            )
    return {known[flag]: _as_flag(value) for flag, value in flags.items()}


def _as_flag(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def read_gates(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """Gates in the order of judging: these, or the usual ones with changes; empty means all.

    ``compile,correctness`` means these; ``+sanitize,-perf`` all usual ones but ``perf``, and
    ``sanitize`` besides.
    """
    words = [part.strip() for part in text.split(",") if part.strip()]
    added = {_known_gate(word[1:]) for word in words if word[0] == "+"}
    removed = {_known_gate(word[1:]) for word in words if word[0] == "-"}
    wanted = {_known_gate(word) for word in words if word[0] not in "+-"}
    if wanted and (added or removed):
        raise UsageError(
            Reason.BAD_FLAG,
            f"--gates={text} both names gates and changes the usual ones",
            hint="write --gates=compile,sanitize or --gates=+sanitize,-perf",
        )
    if added or removed:
        wanted = ({*GATES} | added) - removed
        if not wanted:
            raise UsageError(Reason.BAD_FLAG, f"--gates={text} leaves no gate")
    return tuple(gate for gate in (*GATES, *ON_REQUEST) if gate in wanted)


def _known_gate(name: str) -> str:
    known = (*GATES, *ON_REQUEST)
    if name not in known:
        raise UsageError(
            Reason.UNKNOWN_GATE,
            f"unknown gate '{name}'",
            hint=suggest(name, known) or f"gates: {', '.join(known)}",
        )
    return name


ANEW = "anew"


def _read_rerun(_: click.Context, __: click.Parameter, text: str) -> int:
    """A number, or for the bare flag one that no rerun had: the seconds since 1970."""
    if text == ANEW:
        return int(time.time())
    if not text.isdecimal():
        raise UsageError(
            Reason.BAD_FLAG,
            f"--agent_rerun={text} is no number",
            hint="for new trials write --agent_rerun last; --json says which number they got",
        )
    return int(text)


def _read_devices(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Numbers, each once, in the order of their counting."""
    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        if not word.isdecimal():
            raise UsageError(
                Reason.BAD_FLAG,
                f"--devices={text}: '{word}' is no number of a device",
                hint="write --devices=0,2; kabuild doctor lists them",
            )
    return tuple(sorted({int(word) for word in words}))


_SOLVER = (
    click.option(
        "--agent",
        metavar="NAME",
        help="What turns tasks into solutions.  [default: WORKSPACE.toml's, or expert]",
    ),
    click.option(
        "--solution",
        type=click.Path(path_type=Path),
        help="Judge this file or directory instead of an agent's; for one task.",
    ),
)
_WHERE = (
    click.option(
        "--config",
        multiple=True,
        is_eager=True,
        expose_value=False,
        callback=_apply_config,
        metavar="NAME",
        help="Take the flags of [config.NAME] in WORKSPACE.toml.",
    ),
    click.option(
        "--platform",
        metavar="NAME[:ARCH]",
        help="Where candidates run: cpu, cuda, rocm, cuda:sm_90, ...  [default: cpu]",
    ),
    click.option(
        "--devices",
        default="",
        callback=_read_devices,
        metavar="NUMBERS",
        help="Use only these devices of the platform: 0,2.  [default: all that are alike]",
    ),
)
_HOW = (
    click.option(
        "--trials",
        type=click.IntRange(min=1, max=MOST_TRIALS),
        default=1,
        metavar="N",
        help="How often an agent solves each task; replays do it once.  [default: 1]",
    ),
    click.option(
        "--agent_rerun",
        is_flag=False,
        flag_value=ANEW,
        default="0",
        callback=_read_rerun,
        metavar="[NUMBER]",
        help="Have agents solve tasks again; a number asks for the trials of that rerun.",
    ),
    click.option("--policy", metavar="NAME", help="Scoring policy.  [default: aka]"),
    click.option(
        "--unseen_salt_file",
        type=click.Path(path_type=Path),
        help="Draw unseen configs with this private salt.",
    ),
    click.option(
        "--jobs", "-j", type=click.IntRange(min=1), help="CPU slots.  [default: all cores]"
    ),
    click.option(
        "--sandbox",
        type=click.Choice(["auto", "none"]),
        default="auto",
        show_default=True,
        help="'none' runs without namespaces: results are not hermetic and never shared. "
        "Sessions of agents need a sandbox.",
    ),
    click.option(
        "--locked", is_flag=True, help="Refuse toolchains that toolchains/lock.toml does not hold."
    ),
    click.option(
        "--fetch/--nofetch",
        default=True,
        help="Get pinned toolchains that are not in the store.  [default: fetch]",
    ),
    click.option("--sandbox_debug", is_flag=True, help="Keep the sandboxes' directories."),
    click.option(
        "--explain",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write to this file why each action ran or was cached.",
    ),
    click.option(
        "--test_tag_filters",
        default="",
        metavar="TAGS",
        help="Only tasks with these tags; '-tag' leaves out: memory-bound,-slow.",
    ),
)


def build_flags(function: F) -> F:
    """Add the shared flags to a command."""
    return _flagged(function, (*_WHERE, *_SOLVER, *_HOW))


def named_agents_flags(function: F) -> F:
    """Add the shared flags to a command whose arguments name agents: all but ``--agent`` and
    ``--solution``."""
    return _flagged(function, (*_WHERE, *_HOW))


def _flagged(function: F, flags: Sequence[Callable[[Any], Any]]) -> F:
    for decorate in reversed((click.argument("patterns", nargs=-1, required=True), *flags)):
        function = decorate(function)
    return function
