"""What the suite for devices relies on, on any machine."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import evaluate
import pytest
import runs
from agreement import spreads
from cheat_suite import HERE, Candidate
from copies_page import beside_copies
from description import revision
from evaluate import LIMITS, Evaluation
from kernel_calls import scratch_memory
from page import page
from roofline import products, shares
from throughput import TASKS, variants
from tuned import batched, limit, measure, outcome, tasks
from workplace import Workplace

ROOT = Path(__file__).parents[2]
COMPILE = ROOT / "rules/triton2triton/tools/compile.py"
TERMS = ROOT / "rules/harness/tools"
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


def test_repeated_runs_are_compared_config_by_config() -> None:
    def case(ns: float, low: float, high: float) -> dict[str, float]:
        return {"candidate_ns": ns, "baseline_ns": 200.0, "speedup": 2, "low": low, "high": high}

    found = spreads(
        [{"t a": case(100.0, 1.9, 2.1), "t b": case(1.0, 1, 2)}, {"t a": case(110.0, 2.2, 2.4)}]
    )

    assert found["t a"]["candidate_ns"] == {"readings": [100.0, 110.0], "spread_percent": 10.0}
    assert found["t a"]["baseline_ns"]["spread_percent"] == 0.0
    assert not found["t a"]["intervals_overlap"]
    assert found["t b"]["intervals_overlap"]


def test_experts_are_given_the_scratch_memory_that_they_ask_for() -> None:
    bytes_of = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64)
    library = ctypes.CDLL(None)
    asked = {"scan": bytes_of(lambda rows, cols: rows * cols), "clear": bytes_of(lambda *_: 0)}
    for name, said in asked.items():
        setattr(library, f"{name}_f16_workspace", said)

    (memory,) = scratch_memory(library, "scan_f16_workspace", "cpu")(3, 7)
    assert memory.nbytes == 21
    (memory,) = scratch_memory(library, "clear_f16_workspace", "cpu")(3, 7)
    assert memory.nbytes == 1
    assert scratch_memory(library, "gemm_f16_workspace", "cpu")(3, 7) == ()


def test_every_stage_can_be_run() -> None:
    assert all(callable(getattr(Evaluation, stage)) for stage in LIMITS)


def test_what_verifying_takes_is_said_of_each_config_the_longest_first(tmp_path: Path) -> None:
    out, labels = tmp_path / "out.json", ["//tasks/torch2hip/adamw_8bit", "//tasks/hip2hip/gemm"]
    program = ROOT / "tests/device/verifying.py"

    ran = subprocess.run(
        [sys.executable, program, "cpu", out, *labels], capture_output=True, text=True, check=True
    )

    found = json.loads(out.read_bytes())
    assert {label.partition(":")[0] for label in found} == set(labels)
    for configs in found.values():
        assert len(configs) > 1
        for costs in configs.values():
            assert costs.keys() == {"draw", "oracle", "first look", "closer look"}
            assert all(took > 0 for took in costs.values())
    lines = [line for line in ran.stdout.splitlines() if " ms " in line]
    totals = [float(line.split()[0]) for line in lines]
    assert len(lines) == sum(map(len, found.values()))
    assert totals == sorted(totals, reverse=True)


def test_the_tuner_is_given_the_kernels_with_tunables() -> None:
    found = tasks(ROOT)

    assert {"//tasks/hip2hip/gemm", "//tasks/triton2triton/swiglu"} <= set(found)
    assert not any("torch2hip" in label for label in found)


def test_the_tuner_has_time_for_all_tasks_on_the_devices_there_are() -> None:
    one, four, many = (limit(ROOT, (), 120, devices) for devices in (1, 4, 99))

    assert one > len(tasks(ROOT)) * 120 > four > many > 120
    assert limit(ROOT, ("//tasks/hip2hip/gemm",), 120, 1) == many


def test_what_has_no_time_left_is_not_begun(tmp_path: Path) -> None:
    copy = tmp_path / "kabuild"
    for name in ("tasks/hip2hip/gemm", "tasks/hip2hip/scan", "toolchains/agents"):
        shutil.copytree(ROOT / name, copy / name)
    late = Workplace(copy, tmp_path / "store", deadline=time.monotonic() + 100)

    found = measure(late, tmp_path, seconds=90)

    assert found["not_begun"] == ["//tasks/hip2hip/gemm", "//tasks/hip2hip/scan"]
    assert (found["of"], found["tasks"], found["exit_code"]) == (0, {}, 0)
    assert not (tmp_path / "tuner.kab").exists()
    assert '"tuner"' in (copy / "toolchains/agents/BUILD.toml").read_text()


def test_what_was_judged_is_bundled_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Evaluation] = []

    def run(evaluation: Evaluation, *_: object) -> int:
        made.append(evaluation)
        return 0

    monkeypatch.setattr(evaluate, "_run", run)
    for seconds in (0, 1000):
        options = ["evaluate.py", str(tmp_path), "machine", f"--seconds={seconds}"]
        monkeypatch.setattr(sys, "argv", options)
        evaluate.main()
    late, early = made
    now = time.monotonic()

    assert late.deadline("suite") <= now
    assert now + 10 < late.deadline("bundle") < now + 30
    assert now + LIMITS["bundle"] - 10 < early.deadline("bundle") < now + LIMITS["bundle"] + 10


def test_tasks_take_turns_on_the_devices() -> None:
    assert [len(turn) for turn in batched(["a"] * 7, 4)] == [4, 3]
    assert batched([], 4) == []


LABEL = "//tasks/hip2hip/gemm"
CASE = {"config": "f32", "speedup": 1.2, "low": 1.1, "high": 1.3, "faster": True}


def _left(root: Path, low: float, *, changed: bool) -> Workplace:
    """A workplace as a build leaves it."""
    package, kernel = root / "tasks/hip2hip/gemm", "// kabuild:tune kTile = 8, 16\nint kTile = 8;\n"
    agent, perf = (root / f"out/tasks/hip2hip/gemm/gemm.{name}" for name in ("agent", "perf"))
    call = {"kernel": "a", "gates": ["perf"], "seconds": 5.0}
    calls = [{**call, "gates": ["compile"]}, call, {**call, "kernel": "b"}, call]
    said = [{"role": "user", "text": "?"}, {"role": "assistant", "text": "kTile=8: 1.2x"}]
    facts = {"seconds": 42.0, "checks": 4, "state": "finished", "solution": {"changed": changed}}
    written = {
        package / "BUILD.toml": '[[hip2hip]]\nkernel = "gemm.hip"\n',
        package / "gemm.hip": kernel,
        agent / "agent.json": json.dumps(facts),
        agent / "calls.jsonl": "\n".join(map(json.dumps, calls)),
        agent / "transcript.jsonl": "\n".join(map(json.dumps, said)),
        agent / "solution/gemm.hip": kernel,
        perf / "verdict.json": json.dumps({"mean_speedup": 1.2, "cases": [{**CASE, "low": low}]}),
    }
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Workplace(root, root / "store")


def _targets(**verdicts: str) -> list[dict[str, str]]:
    task = f"{LABEL}:gemm"
    return [
        {"task": task, "gate": gate, "verdict": verdict, "reason": ""}
        for gate, verdict in verdicts.items()
    ]


def test_what_the_tuner_did_is_read_from_what_the_build_left(tmp_path: Path) -> None:
    targets = _targets(compile="PASS", perf="PASS", score="PASS")

    found = outcome(_left(tmp_path, 1.1, changed=True), LABEL, targets)
    assert (found["beaten"], found["judged"], found["speedup"]) == (True, True, 1.2)
    assert (found["tried"], found["agent_seconds"], found["values"]) == (2, 42.0, "kTile=8")
    assert found["transcript"] == ["kTile=8: 1.2x"]

    found = outcome(_left(tmp_path, 0.99, changed=False), LABEL, targets)
    assert (found["beaten"], found["values"]) == (False, "")


def test_a_task_that_was_not_judged_is_neither_beaten_nor_published(tmp_path: Path) -> None:
    workplace = _left(tmp_path, 1.1, changed=True)
    for targets in (_targets(compile="INFRA", perf="INFRA", score="INFRA"), []):
        found = outcome(workplace, LABEL, targets)

        assert not found["beaten"]
        assert not found["judged"]
        assert "tried" not in found


def test_the_page_has_the_tuners_table_and_names_its_bundle(tmp_path: Path) -> None:
    for file in (ROOT / "results/h200").glob("*[a-z].json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "notes.md").write_text("# Notes")
    row = {"speedup": 1.2, "configs": [CASE, {**CASE, "low": 0.9}]}
    rows = {
        LABEL: {**row, "values": "kTile=8", "tried": 2, "agent_seconds": 42.4},
        "//tasks/hip2hip/scan": {**row, "values": "", "tried": 3, "agent_seconds": 9.0},
        "//tasks/hip2hip/softmax": {"speedup": 0.0, "configs": []},
    }
    whole = {"seconds_each": 120, "seconds": 99.0, "beaten": 1, "of": 3, "tasks": rows}
    bundle = {"file": "tuner.kab", "tasks": [LABEL], "publish": {"exit_code": 0}}
    left = {"bundle": bundle, "not_begun": ["//tasks/triton2triton/swiglu"]}
    (tmp_path / "tuner.json").write_text(json.dumps(whole | left))

    told = page(tmp_path)

    intervals = "1.20 (1.00 to 1.30) | 1.20 (1.10 to 1.30), 1.20 (0.90 to 1.30)"
    assert f"| hip2hip/gemm | kTile=8 | {intervals} | 2 | 42 |" in told
    assert f"| hip2hip/scan | the kernel as it is | {intervals} | 3 | 9 |" in told
    assert "| hip2hip/softmax |  | not judged |" in told
    assert "[tuner.kab](tuner.kab) with 1 of them." in told
    assert "No time was left for triton2triton/swiglu." in told


def test_a_stage_goes_on_where_its_first_run_ended(tmp_path: Path) -> None:
    def tuner(number: str, label: str, beaten: bool, left: list[str], seconds: int = 90) -> None:
        bundle = {"file": "tuner.kab", "tasks": [label], "publish": {}}
        run = {"seconds_each": seconds, "seconds": 60.0, "beaten": int(beaten), "of": 1}
        more = {"tasks": {label: {"beaten": beaten}}, "not_begun": left, "bundle": bundle}
        (tmp_path / f"tuner{number}.json").write_text(json.dumps(run | more))

    tuner("", "//a", True, ["//b", "//c"])
    tuner("-2", "//b", False, [])
    tuner("-10", "//a", False, [])
    verdicts = {"x.hip": "perf PASS", "y.hip": "perf FAIL"}, {"x.hip": "perf CANCELLED"}
    for number, found in zip(("", "-2"), verdicts, strict=True):
        rows = {name: {"got": got, "as_expected": True} for name, got in found.items()}
        (tmp_path / f"cheats{number}.json").write_text(json.dumps(rows))

    stages = runs.read(tmp_path)

    tuned = stages["tuner"]
    assert (tuned["beaten"], tuned["of"], tuned["seconds"]) == (0, 2, 180.0)
    assert tuned["not_begun"] == ["//c"]
    assert list(tuned["bundles"]) == ["tuner.kab", "tuner-2.kab", "tuner-10.kab"]
    assert {name: row["got"] for name, row in stages["cheats"].items()} == verdicts[0]
    tuner("-11", "//c", True, [], seconds=120)
    with pytest.raises(ValueError, match="other times"):
        runs.read(tmp_path)


def test_a_plain_archive_says_its_revision_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REVISION", raising=False)
    assert revision(tmp_path) == ""
    (tmp_path / "REVISION").write_text("0123abc\n")
    assert revision(tmp_path) == "0123abc"
    monkeypatch.setenv("REVISION", "4567def")
    assert revision(tmp_path) == "4567def"


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_a_checkout_says_its_revision_by_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REVISION", raising=False)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)

    assert len(revision(tmp_path)) == 40


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
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(TERMS)}, check=True)

        verdict = json.loads((tmp_path / "verdict.json").read_bytes())
        assert verdict["verdict"] == "PASS", f"{path.name}: {verdict['detail']}"


def test_shares_count_every_byte_once() -> None:
    rows_and_cols = ((8192, 8192, "f16"), (4096, 4096, "f32"), (65536, 512, "f16"))
    names = [f"{dtype} rows={rows} cols={cols}" for rows, cols, dtype in rows_and_cols]
    names.append("f32 rows=2048 cols=50257")
    label = "//tasks/hip2hip/softmax"
    suite = {label: {"configs": [{"config": name, "candidate_ns": 1e5} for name in names]}}
    limits = {"copy": {"bytes_per_second": 5e12}, "matrix_products": {}}

    found = shares(ROOT, suite, limits, {label: {"copy_us": 80.0}})[label]

    assert [name for name in names if found[name]["largest"]] == names[-1:]
    assert [share.get("of_equal_copy") for share in found.values()] == [None, None, None, 0.8]
    assert found[names[0]] == {
        "expert_us": 100.0,
        "bytes": 2 * 8192 * 8192 * 2,
        "share_of_copy": 0.537,
        "largest": False,
    }


def test_the_page_names_experts_that_are_slower_than_copies() -> None:
    fast = {"expert_us": 10.0, "copy_us": 8.5, "of_equal_copy": 0.85}
    slow = {"expert_us": 20.0, "copy_us": 8.0, "of_equal_copy": 0.4}
    small = {"expert_us": 5.0, "share_of_copy": 0.1}
    roofline = {"//tasks/a/fast": {"n=2": fast, "n=1": small}, "//tasks/a/slow": {"n=3": slow}}

    told = beside_copies({"roofline": roofline})

    assert "1 of 2 experts" in told
    assert told.splitlines()[-1] == "| a/slow | n=3 | 20.0 | 8.0 | 40 % |"
    assert "The others" not in beside_copies({"roofline": {"//tasks/a/fast": {"n=2": fast}}})


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


def test_runs_of_models_stand_side_by_side(tmp_path: Path) -> None:
    for name, value in {
        "model": {"net": {"run": 1}},
        "model-2": {"net": {"run": 2}, "other": {"run": 2}},
        "modelled": {"timed": {"a": 1.0}, "ranking": 0.9},
        "modelled-2": {"timed": {"a": 1.1}},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))

    found = runs.read(tmp_path)

    assert found["model"] == {"net": [{"run": 1}, {"run": 2}], "other": [{"run": 2}]}
    assert found["modelled"] == {"timed": {"a": 1.0}, "ranking": 0.9, "again": {"a": 1.1}}
