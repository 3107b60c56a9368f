"""What tells two tasks with one label apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kabuild.bundle.manifest import Record
from kabuild.bundle.task_digest import task_digest
from kabuild.model.digest import Digest
from kabuild.store.merkle import FileNode, build
from tests.testkit.bundles import RECORD

SPEC: Mapping[str, Any] = {
    "candidate": {"path": "candidate/kernel.so"},
    "signature": {"dims": ["rows"]},
    "space": {"rows": [1, 65536]},
    "configs": [{"rows": 64}],
    "compare": {},
    "salt": "public",
    "reference": "task/reference.py",
    "policy": {"tolerance": {"f32": {"atol": 1e-5, "rtol": 1e-5}}},
}
ORACLE = {"task/reference.py": b"the oracle"}


def digest(
    *gates: str,
    spec: Mapping[str, Any] = SPEC,
    files: Mapping[str, bytes] = ORACLE,
    **by_gate: Mapping[str, Any],
) -> str:
    """The digest of a task whose gates were told ``spec``, and more ``by_gate``."""
    blobs: dict[Digest, bytes] = {}
    records: list[Record] = []
    for gate in gates or ("correctness", "perf", "unseen"):
        told = json.dumps({**spec, "gate": gate, **by_gate.get(gate, {})}).encode()
        found = {**files, "spec.json": told, "candidate/kernel.so": gate.encode()}
        root = build((path, FileNode(Digest.of(data))) for path, data in found.items())
        blobs |= {Digest.of(data): data for data in found.values()}
        blobs |= {directory.digest: directory.wire for directory in root.all_directories()}
        one = replace(RECORD, gate=gate, root=root.digest, timed=gate == "perf")
        records.append(one)
    return task_digest(records, blobs.__getitem__)


def test_equal_tasks_have_one_digest_whatever_is_judged_and_how_long() -> None:
    perf = {"policy": {"budget_seconds": 60.0}}

    assert digest() == digest(perf=perf) == digest("unseen", "perf", "correctness")
    assert digest() == digest(spec={**SPEC, "salt": "mine", "configs": [{"rows": 128}]})


@pytest.mark.parametrize(
    "other",
    [
        {"files": {"task/reference.py": b"a lenient oracle"}},
        {"files": {**ORACLE, "task/more.py": b""}},
        {"spec": {**SPEC, "space": {"rows": [1, 64]}}},
        {"spec": {**SPEC, "compare": {"y": "sampled(seed)"}}},
        {"unseen": {"policy": {"tolerance": {"f32": {"atol": 1.0, "rtol": 1.0}}}}},
        {"correctness": {"policy": {"distributions": ["usual"]}}},
    ],
)
def test_whoever_eases_what_is_right_has_another_task(other: dict[str, Any]) -> None:
    assert digest(**other) != digest()


def test_what_no_gate_says_is_unknown() -> None:
    assert digest(files={}) == ""
    assert task_digest((), lambda _: b"") == ""


def test_a_specification_may_hold_any_text() -> None:
    assert digest(spec={**SPEC, "signature": "\ud800", "compare": 1e400})
