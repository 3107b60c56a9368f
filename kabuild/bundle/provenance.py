"""Where an evaluation came from, as an in-toto statement with SLSA's provenance predicate."""

from __future__ import annotations

from typing import Any

from kabuild.base.canonical import canonical_json
from kabuild.bundle.manifest import Manifest
from kabuild.model.action import VERDICT_FILE

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://kabuild.dev/evaluation/v1"


def provenance(manifest: Manifest) -> bytes:
    """The statement about a bundle's verdicts and their inputs."""
    subjects: list[dict[str, Any]] = []
    inputs: list[dict[str, Any]] = []
    for record in manifest.records:
        verdict = record.file(VERDICT_FILE)
        if record.gate and verdict:
            subjects.append({"name": record.label, "digest": {"sha256": verdict.digest.hash}})
        inputs.append({"name": record.label, "digest": {"sha256": record.key.hash}})
    return canonical_json(
        {
            "_type": STATEMENT,
            "subject": subjects,
            "predicateType": PREDICATE,
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": dict(manifest.request),
                    "internalParameters": {"platform": dict(manifest.platform)},
                    "resolvedDependencies": inputs,
                },
                "runDetails": {
                    "builder": {"id": BUILD_TYPE, "version": {"kabuild": manifest.kabuild}}
                },
            },
        }
    )
