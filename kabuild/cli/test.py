"""``kabuild test``: run the gates of tasks and print the scoreboard."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from kabuild.cli.answer import answer
from kabuild.cli.flags import build_flags, read_gates
from kabuild.cli.presentation import Presentation, presentation_flags
from kabuild.loading.request import Request
from kabuild.model.options import GATES, ON_REQUEST


@click.command("test", context_settings={"show_default": False})
@build_flags
@click.option(
    "--gates",
    default="",
    callback=read_gates,
    metavar="GATES",
    help=f"Only these gates, comma-separated: {','.join(GATES)}; or the usual ones with "
    f"changes, such as +{ON_REQUEST[-1]},-perf.  [default: all]",
)
@click.option(
    "--keep_going/--nokeep_going",
    "-k",
    default=True,
    help="Go on after a failure.  [default: keep_going]",
)
@click.option(
    "--test_output",
    type=click.Choice(["errors", "all", "summary"]),
    default="errors",
    help="How much to print of each task.  [default: errors]",
)
@click.option(
    "--runs_per_test",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Run each gate N times, afresh, and report verdicts that differ.",
)
@click.option(
    "--cache_test_results/--nocache_test_results",
    default=True,
    help="Whether a cached verdict will do.  [default: yes]",
)
@presentation_flags
def command(
    *,
    gates: tuple[str, ...],
    keep_going: bool,
    test_output: str,
    runs_per_test: int,
    cache_test_results: bool,
    as_json: bool,
    events: Path | None,
    summary: Path | None,
    **shared: Any,
) -> None:
    """Judge tasks: run their gates and print the scoreboard.

    \b
    kabuild test //tasks/...                       everything
    kabuild test -- //tasks/... -//tasks/hip2hip/scan
    kabuild test //tasks/hip2hip/softmax --agent=none
    kabuild test //tasks/hip2hip/softmax --solution=my.hip --gates=compile,correctness
    kabuild test //tasks/hip2hip/softmax:softmax.perf --nocache_test_results

    Exits with 0 when all gates passed, 3 when some did not, 36 when the machine failed.
    """
    began = time.monotonic()
    request = Request(
        gates=gates,
        keep_going=keep_going,
        runs_per_gate=runs_per_test,
        read_cached_gates=cache_test_results,
        **request_fields(shared),
    )
    wanted = Presentation(test_output, as_json, shared["explain"], events, summary)
    recalled = None if wanted.in_full else answer(request, began)
    from kabuild.cli.session import run_session  # what a build needs, an answer does not

    run_session(request, wanted, recalled)


def request_fields(shared: dict[str, Any]) -> dict[str, Any]:
    """The fields of a Request that the shared flags give."""
    return {
        "patterns": shared["patterns"],
        "cwd": Path.cwd(),
        "platform": shared["platform"],
        "devices": shared["devices"],
        "agent": shared["agent"],
        "solution": shared["solution"],
        "policy": shared["policy"],
        "salt_file": shared["unseen_salt_file"],
        "tags": shared["test_tag_filters"],
        "jobs": shared["jobs"],
        "trials": shared["trials"],
        "agent_rerun": shared["agent_rerun"],
        "hermetic": shared["sandbox"] == "auto",
        "keep_sandboxes": shared["sandbox_debug"],
        "locked": shared["locked"],
        "fetch": shared["fetch"],
    }
