"""``kabuild build``: make targets and show their outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kabuild.cli.flags import build_flags
from kabuild.cli.presentation import Presentation, presentation_flags
from kabuild.cli.session import run_session
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request


@click.command("build")
@build_flags
@click.option("--keep_going/--nokeep_going", "-k", default=False, help="Go on after a failure.")
@presentation_flags
def command(
    *,
    keep_going: bool,
    as_json: bool,
    events: Path | None,
    summary: Path | None,
    **shared: Any,
) -> None:
    """Make targets and show their outputs under out/.

    \b
    kabuild build //tasks/hip2hip/softmax:softmax.compile
    kabuild build //toolchains/hip:cpu
    kabuild build '//tasks/...:*.compile' --platform=rocm:gfx942

    Exits with 0 when everything was made, 1 when something was not.
    """
    request = Request(judge=False, keep_going=keep_going, **request_fields(shared))
    wanted = Presentation("errors", as_json, shared["explain"], events, summary)
    run_session(request, wanted)
