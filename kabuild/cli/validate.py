"""``kabuild validate``: whether tasks are fit for a benchmark."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import click

from kabuild.base.version import __version__
from kabuild.cli.flags import KeyFlags, RunFlags, SaltFlags, TargetFlags, VerdictFlags, WhereFlags
from kabuild.cli.null_build import style
from kabuild.cli.options import flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.remote_flags import RemoteFlags
from kabuild.cli.session import builder, leave_views
from kabuild.cli.types import SAMPLES
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.pipeline import Summary
from kabuild.report.failures import broken, render_failures
from kabuild.report.json_report import render_json
from kabuild.report.scoreboard import render_admission, render_totals


@dataclass(frozen=True, kw_only=True)
class ValidateFlags(
    TargetFlags, WhereFlags, SaltFlags, KeyFlags, RunFlags, RemoteFlags, JsonFlags, VerdictFlags
):
    """The options of ``kabuild validate``."""

    samples: int | None = flag(
        "--samples",
        type=SAMPLES,
        metavar="N",
        help="Sampled configs to run the task's own kernels on.  [default: 200]",
    )

    def refine(self, request: Request) -> Request:
        """Add the gates that judge tasks."""
        return super().refine(
            replace(
                request,
                pick=Pick.VALIDATE,
                samples=self.samples,
            )
        )


@click.command("validate", context_settings={"show_default": False})
@takes(ValidateFlags)
def command(options: ValidateFlags) -> None:
    """Check whether tasks are fit for a benchmark.

    Rejects a task whose outputs hardly depend on its inputs, whose comparison accepts wrong
    results, whose oracle is not in double precision, or whose own kernels fail somewhere in
    its shape space.

    \b
    kabuild validate //tasks/...
    kabuild validate //tasks/hip2hip/softmax --samples=1000

    Exits with 0 when all tasks are admitted, 3 when some are not, 36 when the machine failed.
    """
    request = options.request()
    began = time.monotonic()
    with builder() as builds:
        summary = builds.run(request)
        out = summary.plan.loaded.workspace.root / "out"
        leave_views(out, summary, builds.store, builds.sink, {})
    seconds = time.monotonic() - began
    if options.as_json:
        click.echo(_json(summary, seconds))
    else:
        click.echo(_text(request, summary, seconds))
    raise click.exceptions.Exit(int(summary.exit_code))


def _json(summary: Summary, seconds: float) -> str:
    return render_json(
        summary.table,
        summary.totals,
        version=__version__,
        platform=str(summary.plan.loaded.options.platform),
        agent="",
        seconds=seconds,
        exit_code=int(summary.exit_code),
    )


def _text(request: Request, summary: Summary, seconds: float) -> str:
    paragraphs = render_failures(
        summary.table, summary.settled.values(), command="validate", rerun=_flags(request)
    )
    parts = [*(f"{paragraph}\n" for paragraph in paragraphs)]
    closing = render_totals(summary.totals, seconds, broken=broken(summary.settled.values()))
    parts += [render_admission(summary.table, style()), closing]
    return "\n".join(parts)


def _flags(request: Request) -> list[str]:
    """The flags that a rerun needs for the same verdict."""
    named = (
        ("platform", request.platform),
        ("unseen_salt_file", request.salt_file),
        ("samples", request.samples),
    )
    return [f"--{name}={value}" for name, value in named if value is not None]
