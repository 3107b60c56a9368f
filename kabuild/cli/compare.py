"""``kabuild compare``: two agents on the same tasks, paired."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import click

from kabuild.base.errors import ExitCode, Reason, UsageError
from kabuild.builder import Builder
from kabuild.cli.evaluations import Evaluated, evaluated, exit_code, is_file, platform_of, read_file
from kabuild.cli.flags import GateFlags
from kabuild.cli.judging_flags import JudgingFlags
from kabuild.cli.options import takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.session import builder
from kabuild.loading.request import Request
from kabuild.model.event import Warned
from kabuild.report.beside import by_agent, named_apart, remarks, told_apart
from kabuild.report.evaluation import Evaluation
from kabuild.report.paired import Comparison, compare
from kabuild.report.paired_text import render_comparison


@dataclass(frozen=True, kw_only=True)
class CompareFlags(GateFlags, JudgingFlags, JsonFlags):
    """The options of ``kabuild compare``, whose arguments name the agents."""


@click.command("compare", options_metavar="ONE OTHER [OPTIONS]")
@takes(CompareFlags)
def command(options: CompareFlags) -> None:
    """Compare two agents, task by task, and say how sure the difference is.

    \b
    kabuild compare none expert //tasks/hip2hip/...
    kabuild compare mine_v1 mine_v2 //tasks/... --trials=3
    kabuild compare ours.kab theirs.kab

    ONE and OTHER are agents or bundles. Two prompts, models or versions are two agents.

    Agents are compared task by task. A failed trial counts as 1.0x. If only one of the two is
    correct, it wins, with a ratio of at least 1.0x. The interval is a paired bootstrap over tasks;
    the p-value is from an exact sign test. Cached results are reused.

    Exits with 0 whichever is better, 1 if an action failed without a verdict (a missing solution),
    2 if they were judged on different devices, and 36 after an infrastructure failure. Trials that
    were not judged are named and excluded from all figures.
    """
    one, other, *patterns = (*options.patterns, "", "")[: max(2, len(options.patterns))]
    if not one or not other or (not patterns and not (is_file(one) and is_file(other))):
        raise UsageError(
            Reason.BAD_FLAG,
            "name two agents and their targets, or two bundles",
            hint="kabuild compare none expert //tasks/...",
        )
    request = replace(options.request(), patterns=tuple(patterns))
    with builder() as builds:
        made = _both((one, other), request, builds)
        first, second = made.evaluations
        for text in remarks(first, second):
            builds.sink.emit(Warned(f"the two differ in {text}"))
    comparison = _compared(first, second)
    if options.as_json:
        shown = {"schema": "kabuild/compare/1", **comparison.to_json()}
        click.echo(json.dumps(shown, indent=2, allow_nan=False))
    else:
        click.echo(render_comparison(comparison))
    if (code := exit_code(made.evaluations, failed=made.failed)) != ExitCode.OK:
        raise click.exceptions.Exit(int(code))


def _both(names: tuple[str, str], request: Request, builds: Builder) -> Evaluated:
    """The evaluations of both names; nothing runs if they cannot be compared."""
    files = {name: by_agent(read_file(name, builds.store), name) for name in names if is_file(name)}
    here = platform_of(request) if len(files) < len({*names}) else {}
    _refuse_different(names, [files[n].platform if n in files else here for n in names])
    agents = [name for name in names if name not in files]
    made = evaluated([replace(request, agent=name) for name in agents], builds)
    done = zip(agents, made.evaluations, strict=True)
    called = {name: replace(evaluation, name=name) for name, evaluation in done}
    both = named_apart([(files | called)[name] for name in names])
    return replace(made, evaluations=tuple(both))


def _refuse_different(names: tuple[str, str], platforms: list[Mapping[str, str]]) -> None:
    one, other = platforms
    if apart := told_apart(one, other):
        raise UsageError(
            Reason.BAD_FLAG,
            f"{names[0]} and {names[1]} cannot be compared: they differ in {', '.join(apart)}",
            hint="judge both on one device (kabuild compare AGENT AGENT "
            f"//tasks/... --platform=...), or show both (kabuild report {' '.join(names)})",
        )


def _compared(one: Evaluation, other: Evaluation) -> Comparison:
    try:
        return compare(one, other)
    except ValueError as error:
        raise UsageError(Reason.BAD_FLAG, str(error)) from None
