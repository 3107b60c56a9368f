"""The flags that several commands share, by topic; and ``--config``.

Each class sets fields of a ``Request``; a command's options derive from those that it uses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.cli.completion import (
    complete_agents,
    complete_configs,
    complete_labels,
    complete_platforms,
)
from kabuild.cli.options import Options, argument, flag
from kabuild.cli.types import JOBS, LONGEST_NUMBER, InputPath, WholeNumber
from kabuild.loading import find_workspace, load_workspace
from kabuild.loading.loader import Loader
from kabuild.loading.request import Request
from kabuild.loading.workspace import Workspace
from kabuild.model.gate import Pick, check_policy, choose
from kabuild.model.options import MOST_TRIALS


class _ConfigFlagError(UsageError):
    """A config sets an unknown flag, or gives a flag an invalid value."""

    def __init__(self, flag: str, message: str, hint: str) -> None:
        super().__init__(Reason.BAD_FLAG, message, hint=hint)
        self.flag = flag


def _apply_config(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> None:
    """Make the flags of ``[config.NAME]`` the defaults; flags on the command line win."""
    if not names or ctx.resilient_parsing:
        return
    workspace = load_workspace(find_workspace(Path.cwd()))
    defaults: dict[str, Any] = {}
    for name in names:
        flags = workspace.config(name)
        try:
            defaults.update(_checked(ctx, name, flags))
            _check_names(workspace, flags)
        except _ConfigFlagError as error:
            error.position = workspace.position("config", name, error.flag)
            raise
    ctx.default_map = {**(ctx.default_map or {}), **defaults}


def _checked(ctx: click.Context, name: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    options = (param for param in ctx.command.params if isinstance(param, click.Option))
    known = {opt.removeprefix("--"): param for param in options for opt in param.opts}
    known.pop("config", None)  # configs do not inherit from each other
    for name_ in sorted(flags.keys() - known.keys() - _flags_of_test(ctx)):
        what = f"[config.{name}] sets unknown flag '{name_}' of kabuild {ctx.command.name}"
        raise _ConfigFlagError(name_, what, suggest(name_, known))
    return {
        str(known[name_].name): _as_flag(ctx, name_, known[name_], value)
        for name_, value in flags.items()
        if name_ in known
    }


def _check_names(workspace: Workspace, flags: Mapping[str, Any]) -> None:
    """Raise _ConfigFlagError for names that this workspace does not have."""
    from kabuild.analysis.configure import find_agent  # most calls use no config

    loader = Loader(workspace)
    checks: Mapping[str, Callable[[str], object]] = {
        "platform": loader.platforms.parse,
        "agent": lambda name: find_agent(loader, workspace.agent_label(name)),
        "policy": lambda name: check_policy(name, loader.rules.gates().all),
        "gates": lambda text: choose(_words(text), Pick.USUAL, loader.rules.gates().all),
    }
    for flag_name, check in checks.items():
        if flag_name in flags:
            try:
                check(_text(flags[flag_name]))
            except UsageError as error:
                raise _ConfigFlagError(flag_name, error.message, error.hint) from None


def _flags_of_test(ctx: click.Context) -> set[str]:
    """The flags of ``test``: a config may set them even if the current command lacks them."""
    root = ctx.find_root()
    test = root.command.get_command(root, "test") if isinstance(root.command, click.Group) else None
    return {
        name.removeprefix("--")
        for param in (test or ctx.command).params
        if isinstance(param, click.Option)
        for name in param.opts
    } - {"config"}


def _as_flag(ctx: click.Context, name: str, option: click.Option, value: Any) -> Any:
    """A value as the option takes it. Raises _ConfigFlagError for an invalid one."""
    if option.is_flag != isinstance(value, bool):
        kind = "true or false" if option.is_flag else "a string, a number or a list of these"
        raise _ConfigFlagError(name, f"'{name}' must be {kind}, got {_toml(value)}", "")
    if option.is_flag:
        return value
    text: str | list[str] = _text(value)
    if option.multiple:
        text = [str(item) for item in (value if isinstance(value, list) else [value])]
    try:
        option.process_value(ctx, text)
    except click.BadParameter as error:
        raise _ConfigFlagError(name, f"invalid value for '{name}': {error.message}", "") from None
    except UsageError as error:
        raise _ConfigFlagError(name, error.message, error.hint) from None
    return text


def _text(value: Any) -> str:
    """A value as the command line has it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _toml(value: Any) -> str:
    """A value as a TOML file has it; JSON is close enough."""
    return json.dumps(value, ensure_ascii=False)


def read_gates(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """The words of a list, sorted and unique. The tasks' rules say what they mean."""
    return _words(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.strip() for part in text.split(",")} - {""}))


ANEW = "anew"


def _read_rerun(_: click.Context, __: click.Parameter, text: str) -> int:
    """A number, or for the bare flag a new one: the seconds since 1970."""
    if text == ANEW:
        return int(time.time())
    if not text.isdecimal() or len(text) > LONGEST_NUMBER:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--agent_rerun must be an integer, got '{text}'",
            hint="for new trials, put --agent_rerun last; --json shows their number",
        )
    return int(text)


def _read_devices(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Unique numbers in ascending order."""
    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        if not word.isdecimal() or len(word) > LONGEST_NUMBER:
            raise UsageError(
                Reason.BAD_FLAG,
                f"--devices must be device numbers, got '{word}'",
                hint="write --devices=0,2; kabuild doctor lists them",
            )
    return tuple(sorted({int(word) for word in words}))


@dataclass(frozen=True, kw_only=True)
class RequestFlags(Options):
    """The base of flags that become parts of a request."""

    def request(self) -> Request:
        """The request, from the working directory."""
        return self.refine(Request(patterns=(), cwd=Path.cwd()))

    def refine(self, request: Request) -> Request:
        """``request`` with the flags of this class; each class adds its own."""
        return request


@dataclass(frozen=True, kw_only=True)
class TargetFlags(RequestFlags):
    """Which targets."""

    unbound: ClassVar = (
        click.option(
            "--config",
            multiple=True,
            is_eager=True,
            expose_value=False,
            callback=_apply_config,
            metavar="NAME",
            shell_complete=complete_configs,
            help="Take the flags of [config.NAME] in WORKSPACE.toml.",
        ),
    )

    patterns: tuple[str, ...] = argument(nargs=-1, required=True, shell_complete=complete_labels)
    test_tag_filters: str = flag(
        "--test_tag_filters",
        default="",
        metavar="TAGS",
        help="Only tasks with these tags, such as memory-bound,-slow; '-tag' excludes.",
    )

    def refine(self, request: Request) -> Request:
        """Add patterns and tags."""
        chosen = replace(request, patterns=self.patterns, tags=self.test_tag_filters)
        return super().refine(chosen)


@dataclass(frozen=True, kw_only=True)
class WhereFlags(RequestFlags):
    """Where candidates run."""

    platform: str | None = flag(
        "--platform",
        metavar="NAME[:ARCH]",
        shell_complete=complete_platforms,
        help="Where candidates run; 'kabuild doctor' lists platforms.  [default: cpu]",
    )
    devices: tuple[int, ...] = flag(
        "--devices",
        default="",
        callback=_read_devices,
        metavar="NUMBERS",
        help="Use only these devices, such as 0,2.  [default: all of one model]",
    )

    def refine(self, request: Request) -> Request:
        """Add platform and devices."""
        return super().refine(replace(request, platform=self.platform, devices=self.devices))


@dataclass(frozen=True, kw_only=True)
class SolverFlags(RequestFlags):
    """Whose kernel is judged."""

    agent: str | None = flag(
        "--agent",
        metavar="NAME",
        shell_complete=complete_agents,
        help="The agent that solves the tasks.  [default: WORKSPACE.toml's, or expert]",
    )
    solution: Path | None = flag(
        "--solution",
        type=InputPath(),
        help="Judge this file or directory instead of an agent's solution; one task only.",
    )

    def refine(self, request: Request) -> Request:
        """Add agent and solution."""
        return super().refine(replace(request, agent=self.agent, solution=self.solution))


@dataclass(frozen=True, kw_only=True)
class TrialFlags(RequestFlags):
    """How often agents solve each task."""

    trials: int = flag(
        "--trials",
        type=WholeNumber(min=1, max=MOST_TRIALS),
        default=1,
        metavar="N",
        help="Times that an agent solves each task; 'none' and 'expert' run once.  [default: 1]",
    )
    agent_rerun: int = flag(
        "--agent_rerun",
        is_flag=False,
        flag_value=ANEW,
        default="0",
        callback=_read_rerun,
        metavar="[NUMBER]",
        help="Start a new set of trials; a number selects an earlier set.",
    )

    def refine(self, request: Request) -> Request:
        """Add trials and their rerun."""
        return super().refine(replace(request, trials=self.trials, agent_rerun=self.agent_rerun))


@dataclass(frozen=True, kw_only=True)
class PolicyFlags(RequestFlags):
    """How scores are computed."""

    policy: str | None = flag("--policy", metavar="NAME", help="Scoring policy.  [default: aka]")

    def refine(self, request: Request) -> Request:
        """Add the policy."""
        return super().refine(replace(request, policy=self.policy))


@dataclass(frozen=True, kw_only=True)
class SaltFlags(RequestFlags):
    """The salt with which configs are drawn."""

    unseen_salt_file: Path | None = flag(
        "--unseen_salt_file",
        type=InputPath(),
        help="Draw unseen configs with this private salt.",
    )

    def refine(self, request: Request) -> Request:
        """Add the salt."""
        return super().refine(replace(request, salt_file=self.unseen_salt_file))


@dataclass(frozen=True, kw_only=True)
class KeyFlags(RequestFlags):
    """What else changes keys: the sandbox, and which toolchains are accepted."""

    sandbox: str = flag(
        "--sandbox",
        type=click.Choice(["auto", "none"]),
        default="auto",
        show_default=True,
        help="'none' runs without a sandbox: results are not hermetic and are never shared, "
        "and coding agents do not run.",
    )
    locked: bool = flag(
        "--locked",
        is_flag=True,
        help="Fail if a toolchain is not in toolchains/lock.toml.",
    )
    fetch: bool = flag(
        "--fetch/--nofetch",
        default=True,
        help="Download missing pinned toolchains.  [default: fetch]",
    )

    def refine(self, request: Request) -> Request:
        """Add sandbox and toolchains."""
        return super().refine(
            replace(request, hermetic=self.sandbox == "auto", locked=self.locked, fetch=self.fetch)
        )


@dataclass(frozen=True, kw_only=True)
class RunFlags(RequestFlags):
    """How actions run."""

    jobs: int | None = flag(
        "--jobs",
        "-j",
        type=JOBS,
        metavar="N",
        help="Use at most N cores for actions.  [default: all cores]",
    )
    sandbox_debug: bool = flag(
        "--sandbox_debug", is_flag=True, help="Keep sandbox directories for inspection."
    )

    def refine(self, request: Request) -> Request:
        """Add slots, and what is kept."""
        return super().refine(replace(request, jobs=self.jobs, keep_sandboxes=self.sandbox_debug))


@dataclass(frozen=True, kw_only=True)
class GateFlags(RequestFlags):
    """Which gates."""

    gates: tuple[str, ...] = flag(
        "--gates",
        default="",
        callback=read_gates,
        metavar="GATES",
        help="Only these gates, comma-separated: compile,perf; or changes to the default: "
        "+sanitize,-perf.  [default: the usual gates of each task]",
    )

    def refine(self, request: Request) -> Request:
        """Add the gates."""
        return super().refine(replace(request, gates=self.gates))


@dataclass(frozen=True, kw_only=True)
class VerdictFlags(RequestFlags):
    """Whether cached verdicts count."""

    cache_test_results: bool = flag(
        "--cache_test_results/--nocache_test_results",
        default=True,
        help="Use cached verdicts.  [default: yes]",
    )

    def refine(self, request: Request) -> Request:
        """Add --cache_test_results."""
        return super().refine(replace(request, read_cached_gates=self.cache_test_results))
