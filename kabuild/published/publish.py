"""From an evaluation that ended to a bundle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from kabuild.base.errors import BundleError, Reason
from kabuild.bundle.archive import write_bundle
from kabuild.bundle.collect import collect
from kabuild.bundle.manifest import Manifest
from kabuild.bundle.processor import instructions
from kabuild.loading.request import Request
from kabuild.model.options import GATES, ON_REQUEST, Options
from kabuild.pipeline import Summary
from kabuild.store import Store

PUBLIC_SALT = Options.salt
TRANSCRIPTS = ("transcript.jsonl", "calls.jsonl")
"""Outputs of agents that may say more than their solution does."""


def publish(
    path: Path, summary: Summary, store: Store, *, transcripts: bool = False
) -> tuple[Manifest, int]:
    """Write the bundle of an evaluation that ended; its manifest and size in bytes.

    Without ``transcripts``, what agents said stays at home; what they handed in is in. Raises
    BundleError where a gate was not judged, or something is no longer stored.
    """
    for row in summary.table:
        for cell in row.cells:
            if cell.settled.verdict is None:
                raise BundleError(
                    Reason.NOT_PUBLISHABLE,
                    f"{cell.settled.label} was not judged: {cell.word}",
                    hint="publish an evaluation all of whose gates have a verdict",
                )
            if not cell.hermetic:
                raise BundleError(
                    Reason.NOT_PUBLISHABLE,
                    f"{cell.settled.label} ran without a sandbox",
                    hint="evaluate it where namespaces are allowed; see kabuild doctor",
                )
    manifest = manifest_of(summary, store, withheld=() if transcripts else TRANSCRIPTS)
    return manifest, write_bundle(path, manifest, store.cas.get)


def manifest_of(summary: Summary, store: Store, *, withheld: Collection[str] = ()) -> Manifest:
    """What a bundle of this evaluation says of itself. Raises BundleError."""
    analysis = summary.plan.analysis
    owners = {
        action.label: done.target.label
        for done in analysis.targets.values()
        for action in done.actions
    }
    manifest = collect(
        analysis.graph.closure(map(str, summary.plan.roots)),
        summary.settled,
        owners,
        store.cas,
        platform=summary.plan.loaded.options.platform,
        request=_request(summary),
        withheld=withheld,
    )
    return replace(manifest, instructions=instructions())


def check_salt(request: Request, summary: Summary, *, reveal: bool) -> None:
    """Refuse to publish a private salt by accident: who has it knows all unseen configs."""
    if summary.plan.loaded.options.salt != PUBLIC_SALT and not reveal:
        source = "--unseen_salt_file" if request.salt_file else "WORKSPACE.toml"
        raise BundleError(
            Reason.NOT_PUBLISHABLE,
            f"the bundle would hold the private salt of {source}: nobody could run it again "
            "without",
            hint="--reveal_salt publishes it, once its configs need not be unseen any more",
        )


def _request(summary: Summary) -> Mapping[str, Any]:
    options = summary.plan.loaded.options
    asked = {cell.gate for row in summary.table for cell in row.cells}
    return {
        "tasks": [row.label.short for row in summary.table],
        "agent": "" if options.solution else str(options.agent),
        "gates": [gate for gate in (*GATES, *ON_REQUEST) if gate in asked],
        "policy": options.policy,
        "platform": str(options.platform),
        "salt": sha256(options.salt.encode()).hexdigest(),
    }
