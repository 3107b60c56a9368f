"""What a report is made from, read from a bundle that a real machine made."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kabuild.bundle.manifest import Manifest
from kabuild.model.digest import Digest
from kabuild.model.result import OutputFile
from kabuild.report.evaluation import with_records
from kabuild.report.exports import render_json
from kabuild.store.merkle import Directory
from tests.kabuild.report.test_page import evaluation, result
from tests.testkit.bundles import RECORD
from tests.testkit.evaluations import published_evaluation


def test_toolchains_are_listed_with_version_and_digest() -> None:
    (evaluation,) = json.loads(render_json([published_evaluation("results/cpu/expert.kab")]))[
        "evaluations"
    ]

    python, zig = evaluation["toolchains"]
    assert (python["name"], zig["name"], zig["parts"]) == ("python", "zig", [])
    assert zig["version"] == "ziglang 0.17.0"
    assert python["version"].startswith("Python 3.11")
    assert any(part.startswith("torch 2.") for part in python["parts"])
    assert all(len(item["digest"]) == 64 for item in (python, zig))


def test_an_adopted_tree_says_how_many_files_it_has() -> None:
    found = {item.name: item for item in published_evaluation("results/h200/expert.kab").toolchains}

    assert found["nvcc"].version == "1962 files"
    assert {"gcc", "nvcc", "python"} == set(found)


def test_dims_are_in_the_order_in_which_they_were_declared() -> None:
    results = published_evaluation("results/cpu/expert.kab").results
    dims = {result.label.name: result.evidence.dims for result in results}

    assert dims["gemm"] == ("m", "n", "k")
    assert dims["attention_decode"] == ("batch", "heads", "ctx", "dim")


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (b'{"state":"finished"}', {"state": "finished"}),
        (b'{"message":"\\ud800"}', {}),
        (b'{"figures":{"x":NaN}}', {}),
        (b"[]", {}),
    ],
)
def test_what_an_agent_says_spoils_no_report(said: bytes, known: dict[str, Any]) -> None:
    """A session keeps what its agent printed, such as half a character, or no number."""
    empty = Directory({}, {})
    blobs = {Digest.of(said): said, empty.digest: empty.wire}
    task = "//tasks/hip2hip/softmax:softmax"
    files = (OutputFile("agent.json", Digest.of(said)),)
    session = replace(
        RECORD, label=f"{task}.agent", task=task, gate="", root=empty.digest, files=files
    )
    manifest = SimpleNamespace(records=[session], to_json=lambda: b"")

    found = with_records(
        evaluation("a", result("softmax", 2.0)), cast("Manifest", manifest), blobs.__getitem__
    )

    assert found.results[0].agent == known
