"""``kabuild build``: make targets and show their outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from kabuild.cli.flags import SolverFlags
from kabuild.cli.judging_flags import JudgingFlags
from kabuild.cli.options import flag, takes
from kabuild.cli.presentation import PresentationFlags
from kabuild.cli.session import build
from kabuild.loading.request import Request


@dataclass(frozen=True, kw_only=True)
class BuildFlags(SolverFlags, JudgingFlags, PresentationFlags):
    """The options of ``kabuild build``."""

    keep_going: bool = flag(
        "--keep_going/--nokeep_going", "-k", default=False, help="Go on after a failure."
    )

    def refine(self, request: Request) -> Request:
        """Add --keep_going; targets are made, not judged."""
        return super().refine(replace(request, judge=False, keep_going=self.keep_going))


@click.command("build")
@takes(BuildFlags)
def command(options: BuildFlags) -> None:
    """Make targets and show their outputs under out/.

    \b
    kabuild build //tasks/hip2hip/softmax:softmax.compile
    kabuild build //toolchains/hip:cpu
    kabuild build '//tasks/...:*.compile' --platform=rocm:gfx942

    Exits with 0 when everything was made, 1 when something was not.
    """
    build(options.request(), options)
