"""``kabuild replay``: run a published evaluation again and say what was reproduced."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import click

from kabuild.base.errors import ExitCode, Reason, UsageError
from kabuild.base.listing import abridged, counted
from kabuild.base.printing import in_line
from kabuild.bundle.compare import Word
from kabuild.cli.bundle_flags import UnpackFlags
from kabuild.cli.completion import complete_labels
from kabuild.cli.evaluations import known_gates
from kabuild.cli.flags import read_gates
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.session import builder
from kabuild.cli.types import COUNT, JOBS, InputPath
from kabuild.cli.verify import lacking, whose
from kabuild.model.digest import Digest
from kabuild.model.label import Pattern
from kabuild.published.replay import Replayed, replay_file

_LOADED = (
    "only measurements differ: if the machine was loaded, then or now, replay again while it is "
    "idle"
)


@dataclass(frozen=True, kw_only=True)
class ReplayFlags(JsonFlags, UnpackFlags):
    """The options of ``kabuild replay``."""

    bundle: Path = argument(type=InputPath())
    patterns: tuple[str, ...] = argument(nargs=-1, shell_complete=complete_labels)
    gates: tuple[str, ...] = flag(
        "--gates", default="", callback=read_gates, metavar="GATES", help="Only these gates."
    )
    sample: int | None = flag(
        "--sample", type=COUNT, metavar="N", help="Only N actions: a spot check."
    )
    jobs: int | None = flag(
        "--jobs", "-j", type=JOBS, help="Actions to run at once, in cores.  [default: all cores]"
    )


@click.command("replay")
@takes(ReplayFlags)
def command(options: ReplayFlags) -> None:
    """Rerun a published evaluation from its file alone, and compare the results.

    \b
    kabuild replay expert.kab
    kabuild replay expert.kab //tasks/hip2hip/...    only these tasks
    kabuild replay expert.kab --sample=20 --gates=compile,correctness

    Outputs must be equal byte for byte. Measurements must have the same verdict and speedups with
    overlapping intervals; times may differ tenfold. With a different toolchain or device only
    verdicts are compared ("same outcome"); replay then says what differs and how to get the
    original.

    Exits with 0 when everything comparable was reproduced, 3 when something differs, and 36
    when nothing could be reproduced on this machine.
    """
    bundle = options.bundle
    with builder() as builds, builds.stopping() as stop:
        try:
            replayed = replay_file(
                bundle,
                builds.store,
                builds.sink,
                cwd=Path.cwd(),
                patterns=[Pattern.parse(text) for text in options.patterns],
                gates=options.gates,
                known=known_gates(),
                sample=options.sample,
                jobs=options.jobs,
                limit=options.max_bytes,
                stop=stop,
            )
        except OSError as error:
            raise UsageError(Reason.BAD_FLAG, f"{bundle}: {error.strerror}") from None
        interrupted = stop.is_set()
    click.echo(_json(replayed) if options.as_json else told(replayed))
    raise click.exceptions.Exit(int(_exit_code(replayed, interrupted=interrupted)))


def _exit_code(replayed: Replayed, *, interrupted: bool) -> ExitCode:
    if interrupted:
        return ExitCode.INTERRUPTED
    if replayed.count(Word.DIFFERENT):
        return ExitCode.TESTS_FAILED
    return ExitCode.OK if replayed.count(Word.REPRODUCED) else ExitCode.ENVIRONMENT


def told(replayed: Replayed) -> str:
    """What came of it; names in the bundle make no lines, and act on no terminal."""
    lines = [
        f"{item.record.label}: {item.word.value}{f': {item.detail}' if item.detail else ''}"
        for item in replayed.comparisons
    ]
    counts = ", ".join(f"{replayed.count(word)} {word.value}" for word in Word)
    said = [f"to compare byte for byte: {remedy}" for remedy in replayed.remedies]
    if replayed.not_rerun:
        labels = abridged(replayed.not_rerun)
        said.append(f"not rerun, since they use a network or secrets: {labels}")
    differing = [item for item in replayed.comparisons if item.word is Word.DIFFERENT]
    if differing and all(item.record.timed for item in differing):
        said.append(_LOADED)
    judged = [*lacking(replayed.manifest, replayed.left_out), *whose(replayed.origins)]
    number = counted(len(lines), "action")
    if replayed.drawn_from > len(lines):
        number = f"{len(lines)} of {replayed.drawn_from} actions"
    found = [*lines, f"{number}: {counts}", *said, *judged]
    return "\n".join(map(in_line, found))


def _json(replayed: Replayed) -> str:
    return json.dumps(
        {
            "schema": 1,
            "bundle": Digest.of(replayed.manifest.to_json()).hash,
            "published_with": replayed.manifest.kabuild,
            "request": dict(replayed.manifest.request),
            "actions": [
                {
                    "label": item.record.label,
                    "task": item.record.task,
                    "gate": item.record.gate,
                    "result": item.word.value,
                    "detail": item.detail,
                    "figures": [dataclasses.asdict(figure) for figure in item.figures],
                }
                for item in replayed.comparisons
            ],
            "foreign_code": list(replayed.origins.foreign),
            "left_out": {gate: list(tasks) for gate, tasks in replayed.left_out.items()},
            "not_rerun": list(replayed.not_rerun),
            "given": dict(replayed.origins.given),
            "remedies": list(replayed.remedies),
            "drawn_from": replayed.drawn_from,
            "totals": {word.value: replayed.count(word) for word in Word},
        },
        indent=2,
    )
