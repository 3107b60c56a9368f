"""What a report is made from, read from a bundle that a real machine made."""

from __future__ import annotations

import json

from kabuild.report.exports import render_json
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
