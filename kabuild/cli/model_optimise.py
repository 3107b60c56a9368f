"""``kabuild model optimise``: an agent's sessions, spent where a model gains most."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from kabuild.base.errors import ExitCode
from kabuild.base.printing import escaped
from kabuild.cli.completion import complete_agents
from kabuild.cli.flags import KeyFlags, RunFlags, SaltFlags, WhereFlags
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.session import builder, rerun_flags
from kabuild.cli.types import COUNT, DURATION, InputPath
from kabuild.loading.request import Request
from kabuild.neural.ledger import duration, parts_json, render_parts
from kabuild.neural.optimise import (
    AGENT,
    Optimised,
    check_budgets,
    optimise,
    session_seconds,
)
from kabuild.neural.spending import End, Rules, spent, time_now
from kabuild.report.failures import render_failures
from kabuild.sandbox import Spawner

SHARE = click.FloatRange(min=0, max=1, min_open=True)
SPEEDUP = click.FloatRange(min=1, max=1e6)
_CODES = {End.INTERRUPTED: ExitCode.INTERRUPTED, End.BROKEN: ExitCode.ENVIRONMENT}


@dataclass(frozen=True, kw_only=True)
class OptimiseFlags(WhereFlags, SaltFlags, KeyFlags, RunFlags, JsonFlags):
    """The options of ``kabuild model optimise``."""

    directory: Path = argument(type=InputPath(), metavar="DIRECTORY")
    agent: str = flag(
        "--agent",
        metavar="NAME",
        required=True,
        shell_complete=complete_agents,
        help="The agent that solves the tasks, as for 'kabuild test'.",
    )
    budget: float = flag(
        "--budget",
        type=DURATION,
        required=True,
        metavar="TIME",
        help="Time of all sessions with their gates, such as 30m or 4h.",
    )
    part_budget: float = flag(
        "--part_budget",
        type=DURATION,
        default="2h",
        metavar="TIME",
        help="Time of the sessions at one part.  [default: 2h]",
    )
    stalled: int = flag(
        "--stalled",
        type=COUNT,
        default=3,
        metavar="N",
        help="Leave a part after N sessions in a row without progress.  [default: 3]",
    )
    progress: float = flag(
        "--progress",
        type=SPEEDUP,
        default=1.01,
        metavar="X",
        help="Progress is a kernel X times as fast as the best so far.  [default: 1.01]",
    )
    near_roof: float = flag(
        "--near_roof",
        type=SHARE,
        default=0.9,
        metavar="SHARE",
        help="Leave a part that reaches this share of its roof.  [default: 0.9]",
    )
    enough: float = flag(
        "--enough",
        type=SPEEDUP,
        default=2.0,
        metavar="X",
        help="Leave a part that is X times as fast as PyTorch.  [default: 2]",
    )

    def refine(self, request: Request) -> Request:
        """Add the agent."""
        return super().refine(replace(request, agent=self.agent))


@click.command("optimise", context_settings={"show_default": False})
@takes(OptimiseFlags)
def command(options: OptimiseFlags) -> None:
    """Have an agent solve a model's tasks within a budget.

    Sessions run one after the other. Each goes to the part that could still save most of the
    model's time. A part is left when it is near its roof, fast enough, or stalled, or when its
    budget is spent. The fastest kernels are written to solutions/optimised of each task, and all
    decisions to out/model.

    \b
    kabuild model optimise tasks/my_model --agent=claude_code --budget=4h

    After an interruption, the same command continues. Exits with 0 when a part became faster, 3
    when none did, 8 when interrupted, 36 when the machine failed.
    """
    request = options.request()
    rules = Rules(
        budget=options.budget,
        part_budget=min(options.part_budget, options.budget),
        session=session_seconds(request),
        stalled=options.stalled,
        progress=options.progress,
        near_roof=options.near_roof,
        enough=options.enough,
    )
    check_budgets(rules, options.agent)
    say = partial(click.echo, err=options.as_json)
    with builder() as builds, Spawner() as spawner:
        warm = replace(builds, spawner=spawner)
        found = optimise(options.directory, request, rules, warm, lambda text: say(escaped(text)))
    verify = _verify(options.directory, request)
    if found.broken:
        causes = render_failures(
            found.broken.table, found.broken.settled.values(), rerun=rerun_flags(request)
        )
        click.echo(escaped("\n\n".join(causes)), err=True)
    if options.as_json:
        click.echo(json.dumps(_json(found, verify), sort_keys=True))
    else:
        click.echo(escaped(_text(found, verify)))
    raise click.exceptions.Exit(int(_code(found)))


def _text(found: Optimised, verify: str) -> str:
    said = {
        End.PARTS_DONE: "every part is done",
        End.BUDGET: "the remaining budget is shorter than a session may take",
        End.INTERRUPTED: "interrupted; the same command continues",
        End.BROKEN: "the machine failed; the same command continues",
    }[found.end]
    least = "~" if any(part.least for part in found.parts) else ""
    lines = [
        "",
        render_parts(found.parts, found.rules, found.end),
        "",
        f"{said}; sessions: {len(found.sessions)}, {duration(spent(found.parts))}",
        f"predicted for the model's operators: {least}{1 / time_now(found.parts):.2f}x",
        f"decisions: {found.table}, {found.log}",
    ]
    if any(part.best for part in found.parts):
        lines.append(f"verify the model with: {verify}")
    return "\n".join(lines)


def _json(found: Optimised, verify: str) -> dict[str, object]:
    return {
        "end": found.end.value,
        "seconds": spent(found.parts),
        "predicted": 1 / time_now(found.parts),
        "parts": parts_json(found.parts, found.rules),
        "sessions": [session.to_json() for session in found.sessions],
        "verify": verify,
    }


def _verify(directory: Path, request: Request) -> str:
    flags = rerun_flags(replace(request, agent=AGENT))
    return " ".join(["kabuild model verify", str(directory), *flags])


def _code(found: Optimised) -> ExitCode:
    faster = any(part.best for part in found.parts)
    return _CODES.get(found.end, ExitCode.OK if faster else ExitCode.TESTS_FAILED)
