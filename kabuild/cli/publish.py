"""``kabuild publish``: an evaluation in one file, for anyone to run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import Reason, UsageError
from kabuild.bundle.archive import SUFFIX
from kabuild.bundle.signature import sign
from kabuild.cli.flags import build_flags, read_gates
from kabuild.cli.session import interruptible
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request
from kabuild.model.event import Warned
from kabuild.pipeline import execute, load, plan
from kabuild.published.publish import check_salt, publish
from kabuild.report.progress import make_progress
from kabuild.store import Store


@click.command("publish")
@build_flags
@click.option("--gates", default="", callback=read_gates, metavar="GATES", help="Only these gates.")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The bundle to write, such as softmax{SUFFIX}.",
)
@click.option("--reveal_salt", is_flag=True, help="Publish a private salt, too.")
@click.option("--transcripts", is_flag=True, help="Publish what agents said, too.")
@click.option(
    "--sign",
    "key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="KEY",
    help="Sign it with this SSH key, as BUNDLE.sig.",
)
def command(
    *,
    gates: tuple[str, ...],
    output: Path,
    reveal_salt: bool,
    transcripts: bool,
    key: Path | None,
    **shared: Any,
) -> None:
    """Put an evaluation into one file: every input, command, verdict and raw sample.

    \b
    kabuild publish //tasks/... --agent=expert -o expert.kab --sign=~/.ssh/id_ed25519
    kabuild replay expert.kab

    What is cached is not judged again. The file has everything by digest, and nothing of it
    needs to be trusted by whoever runs it again.
    """
    if output.suffix != SUFFIX:
        raise UsageError(
            Reason.BAD_FLAG, f"--output: '{output}' does not end in {SUFFIX}", hint="bundles do"
        )
    request = Request(gates=gates, **request_fields(shared))
    clock = SystemClock()
    sink = make_progress(clock)
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        planned = plan(request, load(request), store)
        with interruptible() as stop:
            summary = execute(request, planned, store, sink, stop=stop, clock=clock)
        check_salt(request, summary, reveal=reveal_salt)
        try:
            manifest, size = publish(output, summary, store, transcripts=transcripts)
        except OSError as error:
            raise UsageError(Reason.BAD_FLAG, f"--output: {error.strerror}: {output}") from None
    unpacked = sum(manifest.blobs.values())
    click.echo(
        f"{output}: {len(manifest.records)} actions, {len(manifest.blobs)} blobs, "
        f"{size / 1e6:.2f} MB ({unpacked / 1e6:.1f} MB unpacked)"
    )
    if key:
        click.echo(f"{sign(output, key)}: its signature")
