"""Evaluations that were published, read into memory: what real judges said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from kabuild.bundle.archive import open_bundle
from kabuild.loading.rule_index import RuleIndex
from kabuild.model.gate import Gate
from kabuild.model.gate_result import GateResult
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation, read_evaluation
from tests.testkit.cli import REPOSITORY

GATES = RuleIndex((REPOSITORY / "rules",)).gates()
"""What the rules of the repository declare."""


def gate_named(name: str) -> Gate:
    """The gate of that name, as the repository's rules declare it; else a usual one."""
    return next((gate for gate in GATES.all if gate.name == name), Gate(name))


@cache
def published_evaluation(bundle: str) -> Evaluation:
    """The evaluation in a bundle of the repository, such as ``results/cpu/expert.kab``."""
    blobs: dict[str, bytes] = {}
    with open_bundle(REPOSITORY / bundle) as opened:
        blobs.update((digest.hash, data) for digest, data in opened.blobs())
        manifest = opened.manifest
    return read_evaluation(manifest, lambda digest: blobs[digest.hash], GATES, source=bundle)


def saying(one: TaskResult, gates: Mapping[str, Mapping[str, Any]], **more: Any) -> TaskResult:
    """``one`` with other gates, each by its ``verdict.json``, and ``more`` fields."""
    read = {
        name: GateResult.read(one.label.sub(name), gate_named(name), said)
        for name, said in gates.items()
    }
    return replace(one, gates=read, **more)


def said(one: TaskResult) -> dict[str, Mapping[str, Any]]:
    """What each gate of ``one`` says, as its ``verdict.json``."""
    return {name: gate.data for name, gate in one.gates.items()}


def in_trial(one: TaskResult, number: int) -> TaskResult:
    """``one`` as another trial."""
    return replace(one, label=one.label.in_trial(number))
