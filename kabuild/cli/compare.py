"""``kabuild compare``: two agents on the same tasks, paired."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import ExitCode, Reason, UsageError
from kabuild.cli.evaluations import evaluated, is_file, machine_failed, platform_of, read_file
from kabuild.cli.flags import named_agents_flags, read_gates
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request
from kabuild.model.event import EventSink, Warned
from kabuild.report.comparable import remarks, told_apart
from kabuild.report.evaluation import Evaluation
from kabuild.report.naming import by_agent, named_apart
from kabuild.report.paired import Comparison, compare
from kabuild.report.paired_text import render_comparison
from kabuild.report.progress import make_progress
from kabuild.store import Store


@click.command("compare", options_metavar="ONE OTHER [OPTIONS]")
@named_agents_flags
@click.option("--gates", default="", callback=read_gates, metavar="GATES", help="Only these gates.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def command(*, gates: tuple[str, ...], as_json: bool, **shared: Any) -> None:
    """Compare two agents, task by task, and say how sure the difference is.

    \b
    kabuild compare none expert //tasks/hip2hip/...
    kabuild compare mine_v1 mine_v2 //tasks/... --trials=3
    kabuild compare ours.kab theirs.kab

    ONE and OTHER are agents or bundles; two prompts, models or versions are two agents. Pairs
    are tasks: a trial that failed counts 1.0x, and where only one of two is right, it wins, with a
    ratio no worse for it than 1.0x, however slow. The interval is a paired bootstrap's over tasks,
    the p-value an exact sign test's. What is cached is not judged again.

    Exits with 0 whoever is better, 2 where the two were judged on different devices, and 36
    where the machine failed some gate: what was not judged is named, and in no figure.
    """
    one, other, *patterns = (*shared["patterns"], "", "")[: max(2, len(shared["patterns"]))]
    if not one or not other or (not patterns and not (is_file(one) and is_file(other))):
        raise UsageError(
            Reason.BAD_FLAG,
            "two agents or bundles and, for agents, targets have to be named",
            hint="kabuild compare none expert //tasks/...",
        )
    sink = make_progress(SystemClock())
    fields = request_fields({**shared, "agent": None, "solution": None})
    request = Request(gates=gates, **(fields | {"patterns": tuple(patterns)}))
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        found = _both((one, other), request, store, sink)
    for text in remarks(*found):
        sink.emit(Warned(f"the two differ in {text}"))
    comparison = _compared(found)
    if as_json:
        shown = {"schema": "kabuild/compare/1", **comparison.to_json()}
        click.echo(json.dumps(shown, indent=2, allow_nan=False))
    else:
        click.echo(render_comparison(comparison))
    if machine_failed(found):
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


def _both(
    names: tuple[str, str], request: Request, store: Store, sink: EventSink
) -> tuple[Evaluation, Evaluation]:
    """What both names mean; nothing is carried out where it could not be compared."""
    files = {name: by_agent(read_file(name, store), name) for name in names if is_file(name)}
    here = platform_of(request) if len(files) < len({*names}) else {}
    _refuse_different(names, [files[n].platform if n in files else here for n in names])
    agents = [name for name in names if name not in files]
    made = evaluated([replace(request, agent=name) for name in agents], store, sink)
    called = {name: replace(done, name=name) for name, done in zip(agents, made, strict=True)}
    one, other = named_apart([(files | called)[name] for name in names])
    return one, other


def _refuse_different(names: tuple[str, str], platforms: list[Mapping[str, str]]) -> None:
    one, other = platforms
    if apart := told_apart(one, other):
        raise UsageError(
            Reason.BAD_FLAG,
            f"{names[0]} and {names[1]} were not judged alike: they differ in {', '.join(apart)}",
            hint="a speedup holds for its device: judge both on one (kabuild compare AGENT AGENT "
            f"//tasks/... --platform=...), or see both (kabuild report {' '.join(names)})",
        )


def _compared(found: tuple[Evaluation, Evaluation]) -> Comparison:
    try:
        return compare(*found)
    except ValueError as error:
        raise UsageError(Reason.BAD_FLAG, str(error)) from None
