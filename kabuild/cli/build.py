"""``kabuild build``: make targets and show their outputs."""

from __future__ import annotations

from typing import Any

import click

from kabuild.cli.flags import build_flags
from kabuild.cli.session import run_session
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request


@click.command("build")
@build_flags
@click.option("--keep_going/--nokeep_going", "-k", default=False, help="Go on after a failure.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
def command(*, keep_going: bool, as_json: bool, **shared: Any) -> None:
    """Make targets and show their outputs under out/.

    \b
    kabuild build //tasks/hip2hip/softmax:softmax.compile
    kabuild build //toolchains/hip:cpu

    Exits with 0 when everything was made, 1 when something was not.
    """
    request = Request(judge=False, keep_going=keep_going, **request_fields(shared))
    run_session(request, output="errors", as_json=as_json, explain=shared["explain"])
