"""What the suite for devices relies on, on any machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cheat_suite import HERE, Candidate
from evaluate import LIMITS, Evaluation
from page import page
from roofline import products, shares
from throughput import TASKS, variants
from tuned import tasks

ROOT = Path(__file__).parents[2]
COMPILE = ROOT / "rules/triton2triton/tools/compile.py"
SIGNATURE = {
    "inputs": [["x", "T", ["n"]]],
    "outputs": [["y", "T", ["n"]]],
    "scalars": [],
    "dims": ["n"],
}
FILES = sorted([*(HERE / "hip").glob("*.hip"), *(HERE / "triton").glob("*.py")])


def test_the_page_of_results_says_what_the_data_say() -> None:
    folder = ROOT / "results/h200"

    assert (folder / "README.md").read_text() == page(folder)


def test_every_stage_can_be_run() -> None:
    assert all(callable(getattr(Evaluation, stage)) for stage in LIMITS)


def test_the_tuner_is_given_the_kernels_with_tunables() -> None:
    found = tasks(ROOT)

    assert {"//tasks/hip2hip/gemm", "//tasks/triton2triton/swiglu"} <= set(found)
    assert not any("torch2hip" in label for label in found)


@pytest.mark.parametrize("label", TASKS)
def test_each_evaluation_is_of_another_kernel(label: str) -> None:
    path = ROOT / label.removeprefix("//") / TASKS[label]

    assert len(set(variants(path, 3))) == 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_candidates_say_how_they_are_judged(path: Path) -> None:
    candidate = Candidate.read(path)

    assert candidate.gate in {"correctness", "perf"}
    assert candidate.verdict in {"PASS", "FAIL", "REJECTED"}
    assert (candidate.verdict == "PASS") is not bool(candidate.reason)


def test_triton_candidates_pass_the_compile_gate(tmp_path: Path) -> None:
    (tmp_path / "signature.json").write_text(json.dumps(SIGNATURE))
    for path in (file for file in FILES if file.suffix == ".py"):
        command = [sys.executable, str(COMPILE), f"--source={path}", "--entry=doubling"]
        command += [f"--signature={tmp_path / 'signature.json'}", f"--out={tmp_path}"]
        subprocess.run(command, check=True)

        verdict = json.loads((tmp_path / "verdict.json").read_bytes())
        assert verdict["verdict"] == "PASS", f"{path.name}: {verdict['detail']}"


def test_shares_count_every_byte_once() -> None:
    rows_and_cols = ((8192, 8192, "f16"), (4096, 4096, "f32"), (65536, 512, "f16"))
    names = [f"{dtype} rows={rows} cols={cols}" for rows, cols, dtype in rows_and_cols]
    names.append("f32 rows=2048 cols=50257")
    label = "//tasks/hip2hip/softmax"
    suite = {label: {"configs": [{"config": name, "candidate_ns": 1e5} for name in names]}}
    limits = {"copy": {"bytes_per_second": 5e12}, "matrix_products": {}}

    found = shares(ROOT, suite, limits)[label]

    assert [name for name in names if found[name]["largest"]] == names[-1:]
    assert found[names[0]] == {
        "expert_us": 100.0,
        "bytes": 2 * 8192 * 8192 * 2,
        "share_of_copy": 0.537,
        "largest": False,
    }


def test_matrix_products_are_compared_config_by_config() -> None:
    sizes = products(ROOT)
    names = {f"{dtype} m={m} n={n} k={k}" for dtype, (m, n, k) in sizes}
    label = "//tasks/triton2triton/matmul"
    suite = {label: {"configs": [{"config": name, "candidate_ns": 2000.0} for name in names]}}
    vendor = {f"{d} {m}x{n}x{k}": {"median_us": 1.0} for d, (m, n, k) in sizes}
    limits = {"copy": {"bytes_per_second": 5e12}, "matrix_products": vendor}

    found = shares(ROOT, suite, limits)

    assert len(found[label]) == 4
    assert {share["share_of_vendor"] for share in found[label].values()} == {0.5}
