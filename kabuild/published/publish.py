"""From a finished evaluation to a bundle, with the licences of imported tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from kabuild.base.errors import BundleError, InfraError, Interrupted, KabuildError, Reason
from kabuild.bundle.archive import write_bundle
from kabuild.bundle.collect import collect
from kabuild.bundle.manifest import Manifest
from kabuild.execution.host import instructions
from kabuild.loading.request import Request
from kabuild.model.action import TRANSCRIPT
from kabuild.model.gate_result import GateResult
from kabuild.model.label import repository_of
from kabuild.model.options import Options
from kabuild.pipeline import Summary
from kabuild.sandbox.namespaces import probe
from kabuild.store import Store

PUBLIC_SALT = Options.salt
TRANSCRIPTS = (TRANSCRIPT, "calls.jsonl")
"""Outputs of agents that may be private."""


def publish(
    path: Path, summary: Summary, store: Store, *, transcripts: bool = False
) -> tuple[Manifest, int]:
    """Write the bundle of a finished evaluation; returns its manifest and size in bytes.

    Without ``transcripts``, sessions of agents are left out; their solutions are included. Raises
    BundleError if a gate was not judged, or something is no longer stored; InfraError if the
    machine is why, and Interrupted where the user is.
    """
    if summary.interrupted:
        raise Interrupted(Reason.INTERRUPTED, "the build was interrupted; nothing was published")
    for result in summary.table:
        for gate in result.gates.values():
            if not gate.hermetic:
                raise _bare(gate)
            if gate.verdict is None:
                raise _unjudged(gate)
    manifest = manifest_of(summary, store, withheld=() if transcripts else TRANSCRIPTS)
    return manifest, write_bundle(path, manifest, store.cas.get)


def _bare(gate: GateResult) -> KabuildError:
    """Why a gate without a sandbox cannot be published: the machine, or the request."""
    refused = probe() is not None
    return (InfraError if refused else BundleError)(
        Reason.NOT_PUBLISHABLE,
        f"{gate.label} ran without a sandbox, so nothing was published",
        hint="evaluate it where namespaces are allowed; 'kabuild doctor' says how to get them"
        if refused
        else "leave out --sandbox=none",
    )


def _unjudged(gate: GateResult) -> KabuildError:
    """Why a gate without a verdict cannot be published: the machine, or the request."""
    of_machine = gate.broken
    why = f": {gate.summary}" if gate.summary else ""
    return (InfraError if of_machine else BundleError)(
        Reason.NOT_PUBLISHABLE,
        f"{gate.label} was not judged ({gate.word}), so nothing was published{why}",
        hint="publish again once the machine works; verdicts so far are cached"
        if of_machine
        else "publish an evaluation with a verdict for every gate",
    )


def manifest_of(summary: Summary, store: Store, *, withheld: Collection[str] = ()) -> Manifest:
    """The manifest of this evaluation's bundle. Raises BundleError."""
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
        request=request_of(summary),
        withheld=withheld,
    )
    return replace(manifest, instructions=instructions())


def check_salt(request: Request, summary: Summary, *, reveal: bool) -> None:
    """Refuse to publish a private salt by accident: it reveals all hidden configs."""
    if summary.plan.loaded.options.salt != PUBLIC_SALT and not reveal:
        source = "--unseen_salt_file" if request.salt_file else "WORKSPACE.toml"
        raise BundleError(
            Reason.NOT_PUBLISHABLE,
            f"a replay of this bundle would need the private salt of {source}",
            hint="--reveal_salt includes it; its hidden configs are then public",
        )


def request_of(summary: Summary) -> Mapping[str, Any]:
    """The request, for people: see ``Manifest.request``."""
    options = summary.plan.loaded.options
    asked = {gate for result in summary.table for gate in result.gates}
    targets = summary.plan.analysis.targets
    tasks = dict.fromkeys(result.label.in_trial(1) for result in summary.table)
    return {
        "tasks": [result.label.short for result in summary.table],
        "agent": "" if options.solution else str(options.agent),
        "gates": [gate.name for gate in summary.plan.gates if gate.name in asked],
        "kinds": {task.short: targets[task].target.kind for task in tasks},
        "policy": options.policy,
        "platform": str(options.platform),
        "salt": sha256(options.salt.encode()).hexdigest(),
        **({"licences": terms} if (terms := licences(summary)) else {}),
    }


def licences(summary: Summary) -> dict[str, str]:
    """The licences of all external repositories in an evaluation, by ``@name``.

    Raises BundleError if a licence forbids redistribution.
    """
    external = summary.plan.loaded.loader.external
    found: dict[str, str] = {}
    for name in sorted({repository_of(row.label.package) for row in summary.table} - {""}):
        terms = external.lock(name).terms
        if not terms.redistribute:
            raise BundleError(
                Reason.NOT_PUBLISHABLE,
                f"the bundle would hold files of '@{name}', whose licence ({terms.licence}) does "
                "not allow redistribution",
                hint="publish it without tasks of this repository",
            )
        found[f"@{name}"] = terms.licence
    return found
