"""``kabuild verify``: whether a published evaluation is intact, and who signed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.listing import abridged, counted
from kabuild.base.printing import in_line
from kabuild.bundle.archive import TOTAL_LIMIT
from kabuild.bundle.manifest import Manifest
from kabuild.bundle.signature import UNSIGNED, signature_of, signer
from kabuild.bundle.verdicts import asked_for
from kabuild.cli.evaluations import known_gates
from kabuild.cli.types import CONTENT, InputPath
from kabuild.published.copied import copied_bundle
from kabuild.published.origin import Origins
from kabuild.published.verify import Verified, verify_file
from kabuild.store import Store


@click.command("verify")
@click.argument("bundle", type=InputPath())
@click.option(
    "--signature",
    type=InputPath(dir_okay=False, plain=True),
    help="The signature file.  [default: BUNDLE.sig if it exists]",
)
@click.option(
    "--allowed_signers",
    type=InputPath(exists=True, dir_okay=False, plain=True),
    help="An OpenSSH allowed_signers file; one of its keys must have signed.",
)
@click.option("--max_bytes", type=CONTENT, default=TOTAL_LIMIT, hidden=True)
def command(
    *, bundle: Path, signature: Path | None, allowed_signers: Path | None, max_bytes: int
) -> None:
    """Check a published evaluation without running it.

    \b
    kabuild verify expert.kab
    kabuild verify expert.kab --allowed_signers=~/.ssh/allowed_signers

    Checks the digest of every blob and the key of every action. Only 'kabuild replay' can show
    whether the verdicts are true.
    """
    try:
        with Store.open() as store:
            copy = copied_bundle(bundle, store)
            verified = verify_file(copy, store, known_gates(), limit=max_bytes, named=bundle)
            wanted = signature or allowed_signers
            where = signature or signature_of(bundle)
            who = UNSIGNED
            if wanted or where.is_file():
                more = "" if allowed_signers else " (identity not checked)"
                who = f"signed by {signer(copy, where, allowed_signers)}{more}"
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"{bundle}: {error.strerror}") from None
    click.echo(told(bundle, verified, who))


def told(bundle: Path, verified: Verified, who: str) -> str:
    """What the bundle holds, and ``who`` claims it; its names make no lines, act on no terminal."""
    manifest = verified.manifest
    actions, blobs = len(manifest.records), len(manifest.blobs)
    counts = f"{counted(actions, 'action')}, {counted(blobs, 'blob')}"
    most = max(map(len, verified.verdicts), default=0)
    parts = (
        [f"{bundle}: whole; {counts}, published with kabuild {manifest.kabuild!r}"],
        [
            who,
            *(
                f"  {gate:<{most}}  {', '.join(f'{count} {word}' for word, count in ended.items())}"
                for gate, ended in verified.verdicts.items()
            ),
            *lacking(manifest, verified.left_out),
        ],
        [
            "a replay runs",
            *(f"  {command!r} {_times(count)}" for command, count in verified.commands.items()),
            *whose(verified.origins),
        ],
    )
    return "\n\n".join("\n".join(map(in_line, lines)) for lines in parts)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def lacking(manifest: Manifest, left_out: Mapping[str, Sequence[str]]) -> list[str]:
    """Lines that list the requested gates, and usual gates that were left out."""
    asked = asked_for(manifest)
    lines = [f"requested gates: {', '.join(asked)}"] if asked else []
    by_tasks: dict[tuple[str, ...], list[str]] = {}
    for gate, tasks in left_out.items():
        by_tasks.setdefault(tuple(tasks), []).append(gate)
    for tasks, gates in by_tasks.items():
        said = f"{', '.join(gates)} of {abridged(tasks)}"
        lines.append(f"gates left out: {said}")
    return lines


def whose(origins: Origins) -> list[str]:
    """Lines for people: whose judge it was, and what else the publisher added."""
    given = ", ".join(f"{count} {kind}" for kind, count in origins.given.items())
    lines = [f"given by its publisher: {given}"] if given else []
    foreign = origins.foreign
    if not foreign:
        return [*lines, "judged by this kabuild's own code"]
    some = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
    what = f"{len(foreign)} files or commands ({some})"
    return [
        *lines,
        f"judged by code that this kabuild does not ship: {what}",
        "read it before you believe it, or evaluate the solutions yourself",
    ]
