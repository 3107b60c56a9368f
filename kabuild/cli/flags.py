"""The flags that several commands share, by topic.

Each class sets fields of a ``Request``; a command's options derive from those that it uses.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import click
from click.core import ParameterSource

from kabuild.base.errors import Reason, UsageError
from kabuild.cli.completion import (
    complete_agents,
    complete_configs,
    complete_labels,
    complete_platforms,
)
from kabuild.cli.config_flag import apply_config, words_of
from kabuild.cli.options import Options, argument, flag
from kabuild.cli.types import JOBS, LONGEST_NUMBER, InputPath, WholeNumber
from kabuild.loading.request import Request
from kabuild.model.options import MOST_TRIALS


def read_gates(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """The words of a list, sorted and unique. The tasks' rules say what they mean."""
    return words_of(text)


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
            callback=apply_config,
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


def _nearer(agent: str, solution: Path) -> tuple[str | None, Path | None]:
    """Of an agent and a solution the one on the command line, where a config has the other.

    Raises UsageError if both are in one place: one of them would have no effect.
    """
    ctx = click.get_current_context()
    typed = [
        ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for name in ("agent", "solution")
    ]
    if typed[0] == typed[1]:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--agent={agent} and --solution={solution} exclude each other",
            hint="a solution is judged instead of an agent's: leave out one of them",
        )
    return (agent, None) if typed[0] else (None, solution)


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
        """Add agent and solution. Raises UsageError for both."""
        agent, solution = self.agent, self.solution
        if agent is not None and solution is not None:
            agent, solution = _nearer(agent, solution)
        return super().refine(replace(request, agent=agent, solution=solution))


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
