"""``kabuild import sol_execbench`` and ``flashinfer_bench`` on checkouts of our own writing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace, Ran
from tests.testkit.definitions import (
    BROKEN,
    CONFIG,
    CORRECTNESS,
    CUSTOM,
    EVALUATOR,
    FI_INPUTS,
    GEMM,
    GEMMS,
    NORM,
    NORMS,
    RESULTS,
    ROUTED,
    SOL_INPUTS,
    TOLERANCE,
    workloads_of,
)
from tests.testkit.visitors import visited

CORE = "../sol/src/sol_execbench/core"
FI = "../fi/flashinfer_bench/bench"


@pytest.fixture(scope="module")
def sol(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout in SOL-ExecBench's form, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    workspace.write(f"{CORE}/bench/io.py", SOL_INPUTS)
    workspace.write(f"{CORE}/bench/correctness.py", CORRECTNESS)
    workspace.write(f"{CORE}/data/workload.py", TOLERANCE)
    good = {
        "norm": (json.dumps(NORM), NORMS, ""),
        "routed": (json.dumps(ROUTED), workloads_of(({"N": 40, "x": 12}, CUSTOM)), ""),
        "gemm": (json.dumps(GEMM), GEMMS, ""),
    }
    for name, (definition, workloads, _) in {**good, **BROKEN}.items():
        workspace.write(f"../sol/examples/{name}/definition.json", definition)
        workspace.write(f"../sol/examples/{name}/workload.jsonl", workloads)
    workspace.write("../sol/examples/.hidden/x/definition.json", "")
    ran = workspace.run("import", "sol_execbench", "../sol", "--name=sol")
    assert ran.code == 0, ran.err
    assert f"@sol: 3 of {len(BROKEN) + 3} tasks imported\n  licence: Apache-2.0" in ran.out, ran.out
    return workspace


@pytest.fixture(scope="module")
def flashinfer(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """The same in FlashInfer-Bench's form."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    for name, text in (
        ("utils.py", FI_INPUTS),
        ("config.py", CONFIG),
        ("evaluators/default.py", EVALUATOR),
        ("evaluators/utils.py", RESULTS),
    ):
        workspace.write(f"{FI}/{name}", text)
    traced = ({"definition": "gemm", "workload": json.loads(line)} for line in GEMMS.splitlines())
    lines = "".join(json.dumps(line) + "\n" for line in traced)
    workspace.write("../fi/data/trace/definitions/gemm/gemm.json", json.dumps(GEMM))
    workspace.write("../fi/data/trace/workloads/gemm/gemm.jsonl", lines)
    workspace.write("../fi/data/trace/definitions/gemm/alone.json", json.dumps(GEMM))
    ran = workspace.run("import", "flashinfer_bench", "../fi", "--name=fi")
    assert ran.code == 0, ran.err
    return workspace


def _listed(workspace: CliWorkspace, name: str) -> dict[str, str]:
    lines = workspace.run("import", "--list", name).out.splitlines()
    return dict(line.split("  ", 1) for line in lines)


def _judged(workspace: CliWorkspace, task: str, kernel: str) -> Ran:
    workspace.write("kernel.py", kernel)
    flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
    return workspace.run("test", task, *flags)


def test_every_definition_is_imported_or_left_out_for_a_reason(sol: CliWorkspace) -> None:
    listed = _listed(sol, "@sol")

    for name in ("norm", "routed", "gemm"):
        assert listed.pop(f"@sol//examples/{name}") == "imported"
    for name, (_, _, why) in BROKEN.items():
        assert listed.pop(f"@sol//examples/{name}").startswith(why), name
    assert not listed


def test_workloads_that_differ_in_sizes_become_configs(sol: CliWorkspace) -> None:
    """Constant axes stay, also on ``cpu``; an axis and a tensor of one name are told apart."""
    lock = (sol.root / "imports/sol.lock.toml").read_text()

    for line in (
        'inputs = { x = "bf16[rows, 32]" }',
        'state = { norm_weight = "bf16[32]" }',
        'outputs = { y = "bf16[rows, 32]", scale = "T[rows]" }',
        "scalars = { eps = 0.001 }",
        "configs = [{ rows = 96 }, { rows = 24 }]",
        "(x, norm_weight, eps)",
        'inputs = { X = "T[n, x_size]", table = "T[8, x_size]", places = "i64[n]" }',
        "configs = [{ n = 40, x_size = 12 }]",
        "configs = [{ m = 16 }]",
        'dims = { m = "4..16" }',
        'member = "reference"',
    ):
        assert line in lock, lock
    ran = sol.run("import", "--check", "@sol")
    assert ran.code == 0, ran.err


NORM_RUN = str(NORM["reference"])
WRITING = (
    NORM_RUN.replace("def run(x, norm_weight, eps)", "def run(x, norm_weight, eps, y, scale)")
    .replace("    scale = torch", "    scale[...] = torch")
    .replace("    y = (", "    y[...] = (")
    .replace('    return {"scale": scale, "y": y}\n', "")
)
ROUTED_RUN = str(ROUTED["reference"])


@pytest.mark.parametrize(
    ("task", "kernel", "reason"),
    [
        ("norm", NORM_RUN, ""),
        ("norm", NORM_RUN.replace('{"scale": scale, "y": y}', "y, scale"), ""),
        ("norm", NORM_RUN.replace('{"scale": scale, "y": y}', "scale, y"), "WRONG_SHAPE"),
        ("norm", NORM_RUN.replace(" * norm_weight", ""), "WRONG_RESULT"),
        ("norm", NORM_RUN.replace("+ eps", ""), "WRONG_RESULT"),
        ("norm", WRITING, ""),
        ("norm", WRITING.replace("    y[...] = (", "    _ = ("), "WRONG_RESULT"),
        ("routed", ROUTED_RUN, ""),
        ("routed", ROUTED_RUN.replace("table[places]", "table[0]"), "WRONG_RESULT"),
        ("gemm", "def run(a, b):\n    return a @ b.mT\n", ""),
        ("gemm", "def run(a, b, c):\n    c.copy_(a @ b.mT)\n", ""),
        ("gemm", "def run(a, b, c):\n    c.copy_(a @ b.mT).mul_(0.99)\n", "WRONG_RESULT"),
        ("gemm", "def run(a, b):\n    return a @ b.mT, a\n", "EXCEPTION"),
    ],
)
def test_a_solution_that_returns_or_writes_is_judged(
    sol: CliWorkspace, task: str, kernel: str, reason: str
) -> None:
    ran = _judged(sol, f"@sol//examples/{task}", kernel)

    assert (ran.code, ran.gate("correctness")["reason"]) == (3 if reason else 0, reason), ran.out


def test_the_definitions_own_reference_is_the_baseline(sol: CliWorkspace) -> None:
    ran = sol.run("test", "@sol//...", "--agent=none", "--gates=compile,correctness", "--json")

    verdicts = {entry["verdict"] for entry in ran.json["targets"]}
    assert (ran.code, verdicts) == (0, {"PASS"}), ran.out


def test_solutions_need_the_entry(sol: CliWorkspace) -> None:
    ran = _judged(sol, "@sol//examples/gemm", "def kernel(a, b):\n    return a @ b.mT\n")

    assert (ran.code, ran.gate("compile")["reason"]) == (3, "MISSING_ENTRY"), ran.out
    assert ran.gate("compile")["summary"] == "kernel.py: it does not define 'run'"


def test_tasks_are_proved_with_the_benchmarks_own_comparison(sol: CliWorkspace) -> None:
    ran = sol.run("import", "--prove", "@sol")

    assert ran.code == 0, ran.out + ran.err
    reduced = (line.partition("reduced") for line in ran.out.splitlines() if "reduced" in line)
    rows = {name.strip(): counts.split() for name, _, counts in reduced}
    assert rows["the original"] == ["3", "3", "0", "0", "0"], ran.out
    assert rows["zeros"] == ["3", "0", "0", "0", "3"], ran.out
    assert rows["one element"] == ["3", "0", "3", "0", "0"], ran.out  # a tenth may be wrong
    assert "3 of 3 tasks mean what their originals do" in ran.out


@pytest.mark.parametrize(
    "file", ["examples/gemm/definition.json", "src/sol_execbench/core/bench/io.py"]
)
def test_a_file_that_changed_is_named(sol: CliWorkspace, tmp_path: Path, file: str) -> None:
    copy = sol.copy(tmp_path)
    source = sol.root / "../sol"
    for path in source.rglob("*.*"):
        if path.is_file():
            copy.write(f"../sol/{path.relative_to(source)}", path.read_text())
    copy.write(f"../sol/{file}", (source / file).read_text() + "\n")

    tested = copy.run("test", "@sol//examples/gemm", "--agent=none", "--gates=compile")

    assert tested.code == 1
    assert f"../sol/{file} changed since it was imported" in tested.err
    assert "Traceback" not in tested.err


def test_a_data_set_of_traces_is_imported_judged_and_proved(flashinfer: CliWorkspace) -> None:
    assert _listed(flashinfer, "@fi") == {
        "@fi//data/trace/gemm/gemm": "imported",
        "@fi//data/trace/gemm/alone": "NO_WORKLOADS  it has no workloads, which say its sizes",
    }
    for kernel, reason in (
        ("def run(a, b):\n    return a @ b.mT\n", ""),
        ("def run(a, b, c):\n    c.copy_(a @ b.mT)\n", ""),
        ("def run(a, b, c):\n    c.copy_(b.mT[:1] * a[:, :1])\n", "WRONG_RESULT"),
        ("def run(a, b):\n    return a.round(decimals=1) @ b.mT\n", "WRONG_RESULT"),
    ):
        ran = _judged(flashinfer, "@fi//data/trace/gemm/gemm", kernel)
        assert ran.gate("correctness")["reason"] == reason, ran.out
    ran = flashinfer.run("import", "--prove", "@fi")
    assert ran.code == 0, ran.out + ran.err
    assert "1 of 1 tasks mean what their originals do" in ran.out


def test_an_agent_works_on_an_imported_task(sol: CliWorkspace) -> None:
    assert "BRIEF.md" in visited(sol, "@sol//examples/gemm")
