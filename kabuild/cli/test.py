"""``kabuild test``: run the gates of tasks and print the scoreboard."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import click

from kabuild.cli.flags import GateFlags, SolverFlags, VerdictFlags
from kabuild.cli.judging_flags import JudgingFlags
from kabuild.cli.null_build import answer
from kabuild.cli.options import flag, takes
from kabuild.cli.presentation import PresentationFlags
from kabuild.cli.types import RUNS
from kabuild.loading.request import Request


@dataclass(frozen=True, kw_only=True)
class TestFlags(SolverFlags, GateFlags, JudgingFlags, PresentationFlags, VerdictFlags):
    """The options of ``kabuild test``."""

    keep_going: bool = flag(
        "--keep_going/--nokeep_going",
        "-k",
        default=True,
        help="Go on after a failure.  [default: keep_going]",
    )
    test_output: str = flag(
        "--test_output",
        type=click.Choice(["errors", "all", "summary"]),
        default="errors",
        help="How much to print about each task.  [default: errors]",
    )
    runs_per_test: int = flag(
        "--runs_per_test",
        type=RUNS,
        default=1,
        metavar="N",
        help="Run each gate N times without the cache, and report verdicts that differ.",
    )

    def refine(self, request: Request) -> Request:
        """Add repetitions and --keep_going."""
        return super().refine(
            replace(
                request,
                keep_going=self.keep_going,
                runs_per_gate=self.runs_per_test,
            )
        )


@click.command("test", context_settings={"show_default": False})
@takes(TestFlags)
def command(options: TestFlags) -> None:
    """Judge tasks: run their gates and print the scoreboard.

    \b
    kabuild test //tasks/...                       everything
    kabuild test -- //tasks/... -//tasks/hip2hip/scan
    kabuild test //tasks/hip2hip/softmax --agent=none
    kabuild test //tasks/hip2hip/softmax --solution=my.hip --gates=compile
    kabuild test //tasks/hip2hip/softmax:softmax.perf --nocache_test_results

    Exits with 0 when all gates passed, 3 when some did not, 36 when the machine failed.
    """
    began = time.monotonic()
    request = options.request()
    recalled = None if options.in_full else answer(request, began)
    from kabuild.cli.session import build  # a build needs these imports, an answer does not

    build(request, options, recalled)
