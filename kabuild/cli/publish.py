"""``kabuild publish``: an evaluation in one file, for anyone to run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.listing import counted
from kabuild.bundle.archive import SUFFIX
from kabuild.bundle.manifest import Manifest
from kabuild.bundle.signature import sign, signature_of
from kabuild.cli.evaluations import known_gates
from kabuild.cli.flags import GateFlags, SolverFlags
from kabuild.cli.judging_flags import JudgingFlags
from kabuild.cli.options import flag, takes
from kabuild.cli.outputs import check_outputs
from kabuild.cli.records import broken_by, records_file, records_in
from kabuild.cli.session import builder
from kabuild.cli.types import InputPath, OutputFile, say_of, unwritable
from kabuild.published.publish import check_salt, publish
from kabuild.report.evaluation import read_evaluation
from kabuild.report.records import Record, records
from kabuild.report.replays import SUFFIX as REPLAY
from kabuild.store import Store


@dataclass(frozen=True, kw_only=True)
class PublishFlags(SolverFlags, GateFlags, JudgingFlags):
    """The options of ``kabuild publish``."""

    output: Path = flag(
        "--output",
        "-o",
        required=True,
        type=OutputFile(),
        metavar="FILE",
        help=f"The bundle to write, such as softmax{SUFFIX}.",
    )
    reveal_salt: bool = flag(
        "--reveal_salt", is_flag=True, help="Include the private salt of the unseen configs."
    )
    transcripts: bool = flag(
        "--transcripts", is_flag=True, help="Include the transcripts of agents."
    )
    sign: Path | None = flag(
        "--sign",
        type=InputPath(exists=True, dir_okay=False, plain=True),
        metavar="KEY",
        help="Sign it with this SSH key, as BUNDLE.sig.",
    )


@click.command("publish")
@takes(PublishFlags)
def command(options: PublishFlags) -> None:
    """Write an evaluation to one file: every input, command, verdict and raw sample.

    \b
    kabuild publish //tasks/... -o expert.kab --sign=~/.ssh/id_ed25519
    kabuild replay expert.kab

    Cached results are reused. Those who replay the file need not trust it: everything in it is
    checked by digest, and run again.

    If WORKSPACE.toml names a file of records, lists those that the evaluation breaks.

    Exits with 0 whatever the verdicts are. If a gate was not judged, nothing is written, and it
    exits with 36 after an infrastructure failure, 8 when interrupted.
    """
    output, key = options.output, options.sign
    if output.suffix != SUFFIX:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--output: '{output}' does not end in {SUFFIX}",
            hint=f"write --output={output}{SUFFIX}",
        )
    if key and output.exists() and not output.is_file():
        raise UsageError(Reason.BAD_FLAG, f"--sign: '{output}' is not a regular file")
    held = records_in(records_file())
    request = options.request()
    with builder() as builds:
        planned = builds.plan(request)
        check_outputs(planned, {"--output": output})
        summary = builds.execute(request, planned)
        check_salt(request, summary, reveal=options.reveal_salt)
        try:
            manifest, size = publish(output, summary, builds.store, transcripts=options.transcripts)
        except OSError as error:
            raise unwritable("--output", output, error) from None
        broken = _broken(manifest, builds.store, held)
    unpacked = sum(manifest.blobs.values())
    say_of(
        output,
        f"{output}: {counted(len(manifest.records), 'action')}, "
        f"{counted(len(manifest.blobs), 'blob')}, "
        f"{size / 1e6:.2f} MB ({unpacked / 1e6:.1f} MB unpacked)",
    )
    for line in broken:
        say_of(output, line)
    if broken:
        text = f"records count once replayed: kabuild replay --json {output} > {output}{REPLAY}"
        say_of(output, text)
    if key:
        try:
            click.echo(f"{sign(output, key)}: its signature")
        except OSError as error:
            raise unwritable("--sign", signature_of(output), error) from None


def _broken(manifest: Manifest, store: Store, held: Sequence[Record]) -> list[str]:
    """What to say of the records that an evaluation breaks."""
    if not held:
        return []
    evaluation = read_evaluation(manifest, store.cas.get, known_gates())
    return [*broken_by(records([evaluation], held=held), held)]
