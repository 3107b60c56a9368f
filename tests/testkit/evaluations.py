"""Evaluations that were published, read into memory: what real judges said."""

from __future__ import annotations

from functools import cache

from kabuild.bundle.archive import open_bundle
from kabuild.report.evaluation import Evaluation, read_evaluation
from tests.testkit.cli import REPOSITORY


@cache
def published_evaluation(bundle: str) -> Evaluation:
    """The evaluation in a bundle of the repository, such as ``results/cpu/expert.kab``."""
    blobs: dict[str, bytes] = {}
    with open_bundle(REPOSITORY / bundle) as opened:
        blobs.update((digest.hash, data) for digest, data in opened.blobs())
        manifest = opened.manifest
    return read_evaluation(manifest, lambda digest: blobs[digest.hash], source=bundle)
