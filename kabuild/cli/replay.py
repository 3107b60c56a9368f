"""``kabuild replay``: run a published evaluation again and say what was reproduced."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import ExitCode, Reason, UsageError
from kabuild.bundle.archive import TOTAL_LIMIT
from kabuild.bundle.compare import Word
from kabuild.cli.flags import read_gates
from kabuild.cli.session import interruptible
from kabuild.cli.verify import lacking, whose
from kabuild.model.event import Warned
from kabuild.published.replay import Replayed, replay_file
from kabuild.report.progress import make_progress
from kabuild.store import Store


@click.command("replay")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--gates", default="", callback=read_gates, metavar="GATES", help="Only these gates.")
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="Only N actions: a spot check."
)
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="CPU slots.  [default: all cores]")
@click.option(
    "--max_bytes",
    type=click.IntRange(min=1),
    default=TOTAL_LIMIT,
    show_default=True,
    help="Refuse a bundle that unpacks to more.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
def command(
    *,
    bundle: Path,
    gates: tuple[str, ...],
    sample: int | None,
    jobs: int | None,
    max_bytes: int,
    as_json: bool,
) -> None:
    """Run a published evaluation again, from nothing but the file, and compare.

    \b
    kabuild replay expert.kab
    kabuild replay expert.kab --sample=20 --gates=compile,correctness

    Every output has to be equal byte for byte; a measurement's verdict has to be equal, and
    its intervals have to overlap. With another toolchain or device than was used, verdicts
    alone are compared ("same outcome"); it says what is another one, and how to get it.

    Exits with 0 when all that is comparable was reproduced, 3 when something differs, 36 when
    nothing was reproduced, as toolchains or devices are other ones here.
    """
    sink = make_progress(SystemClock())
    with (
        Store.open(warn=lambda text: sink.emit(Warned(text))) as store,
        interruptible() as stop,
    ):
        try:
            replayed = replay_file(
                bundle,
                store,
                sink,
                cwd=Path.cwd(),
                gates=gates,
                sample=sample,
                jobs=jobs,
                limit=max_bytes,
                stop=stop,
            )
        except OSError as error:
            raise UsageError(Reason.BAD_FLAG, f"{bundle}: {error.strerror}") from None
        interrupted = stop.is_set()
    click.echo(_json(replayed) if as_json else _text(replayed))
    raise click.exceptions.Exit(int(_exit_code(replayed, interrupted=interrupted)))


def _exit_code(replayed: Replayed, *, interrupted: bool) -> ExitCode:
    if interrupted:
        return ExitCode.INTERRUPTED
    if replayed.count(Word.DIFFERENT):
        return ExitCode.TESTS_FAILED
    return ExitCode.OK if replayed.count(Word.REPRODUCED) else ExitCode.ENVIRONMENT


def _text(replayed: Replayed) -> str:
    lines = [
        f"{item.record.label}: {item.word.value}{f': {item.detail}' if item.detail else ''}"
        for item in replayed.comparisons
    ]
    counts = ", ".join(f"{replayed.count(word)} {word.value}" for word in Word)
    said = [f"to compare byte for byte: {remedy}" for remedy in replayed.remedies]
    judged = [*lacking(replayed.manifest, replayed.left_out), *whose(replayed.origins)]
    return "\n".join([*lines, f"{len(lines)} actions: {counts}", *said, *judged])


def _json(replayed: Replayed) -> str:
    return json.dumps(
        {
            "schema": 1,
            "published_with": replayed.manifest.kabuild,
            "request": dict(replayed.manifest.request),
            "actions": [
                {
                    "label": item.record.label,
                    "task": item.record.task,
                    "gate": item.record.gate,
                    "result": item.word.value,
                    "detail": item.detail,
                }
                for item in replayed.comparisons
            ],
            "foreign_code": list(replayed.origins.foreign),
            "left_out": {gate: list(tasks) for gate, tasks in replayed.left_out.items()},
            "given": dict(replayed.origins.given),
            "remedies": list(replayed.remedies),
            "totals": {word.value: replayed.count(word) for word in Word},
        },
        indent=2,
    )
