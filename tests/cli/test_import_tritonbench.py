"""``kabuild import tritonbench`` on a checkout of our own, in the forms of its files."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.visitors import visited

FUNCTION = """
import torch

def unused(x):
    return x

def scaled_add(input, other, alpha=1, out=None):
    assert input.dtype is torch.float32 or input.dtype is torch.float64
    if (input == 0).any():
        raise ValueError("zeros have no logarithm")
    return (input + alpha * other).t().contiguous().t()

LINE
# The tests.
import torch
from scaled_add import scaled_add

def test_scaled_add():
    results = {}
    x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]], device="cuda")
    results["test_case_1"] = scaled_add(x, torch.ones(3, device="cuda"), alpha=0.5)
    return results

test_results = test_scaled_add()
""".replace("LINE", "#" * 140)
INTEGERS = FUNCTION.replace("dtype is torch.float32", "dtype is torch.int64").replace(
    "[[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]]", "[1, 2, 3]"
)
INTEGERS = INTEGERS.replace('torch.ones(3, device="cuda"), alpha=0.5', "x")
NEAR = FUNCTION.replace("assert", "assert float(other[0]) == 1.0 and", 1)
WRONG = FUNCTION.replace("assert", "assert input.dim() == 9 and", 1)
UNCALLED = FUNCTION.replace("= scaled_add(x", "= torch.add(x")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    texts = {"T_v1/scaled_add": FUNCTION, "T_v1/integers": INTEGERS, "T_v1/near": NEAR}
    texts |= {"T_v1/wrong": WRONG, "T_v1/uncalled": UNCALLED, "G_v1/kernel": "import triton"}
    for name, text in texts.items():
        own = text.replace("from scaled_add", f"from {name.rpartition('/')[2]}")
        workspace.write(f"../bench/data/TritonBench_{name}.py", own)
    ran = workspace.run("import", "tritonbench", "../bench")
    assert ran.code == 0, ran.err
    assert "@tritonbench: 1 of 6 tasks imported\n  licence: Apache-2.0" in ran.out, ran.out
    return workspace


def test_every_file_is_a_task_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = imported.run("import", "--list", "@tritonbench").out

    for line in (
        "@tritonbench//T/scaled_add  imported",
        "@tritonbench//G/kernel  NO_ORACLE  only its kernel defines what it computes",
        "@tritonbench//T/integers  VALUES_FIXED  its inputs are integers or zeros that its test",
        "@tritonbench//T/near  VALUES_FIXED  it works for the numbers that its test writes down",
        "@tritonbench//T/wrong  DOES_NOT_RUN  its function fails on a CPU without gradients",
        "@tritonbench//T/uncalled  NO_ENTRY  its test calls no function of the file by name",
    ):
        assert line in listed, listed


@pytest.mark.parametrize(
    ("wrong", "code", "reason"),
    [(("", ""), 0, ""), (("alpha * other", "other"), 3, "WRONG_RESULT")],
)
def test_the_file_without_its_tests_is_judged(
    imported: CliWorkspace, wrong: tuple[str, str], code: int, reason: str
) -> None:
    """Its tests ask for a GPU where they are read, which ``cpu`` does not have."""
    imported.write("kernel.py", FUNCTION.replace(*wrong, 1))

    flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
    ran = imported.run("test", "@tritonbench//T/scaled_add", *flags)

    assert (ran.code, ran.gate("correctness")["reason"]) == (code, reason), ran.out


def test_the_lock_says_what_the_first_call_passes(imported: CliWorkspace) -> None:
    lock = (imported.root / "imports/tritonbench.lock.toml").read_text()

    for line in (
        'call = "y = scaled_add(input=input, other=other, alpha=alpha)"',
        'inputs = { input = "T[2, 3]", other = "T[3]" }',
        'layout = { y = "any" }',
        'correctness = { distributions = ["default"] }',  # it has no value for zeros
    ):
        assert line in lock, lock


def test_a_file_that_changed_is_named(imported: CliWorkspace) -> None:
    path = imported.root / "../bench/data/TritonBench_T_v1/scaled_add.py"
    path.write_text(FUNCTION + "\n# changed\n")
    try:
        ran = imported.run("test", "@tritonbench//T/scaled_add", "--agent=none")
    finally:
        path.write_text(FUNCTION)

    assert ran.code == 1
    assert "scaled_add.py changed since it was imported" in ran.err
    assert "Traceback" not in ran.err


def test_an_agent_works_on_an_imported_task(imported: CliWorkspace) -> None:
    assert "BRIEF.md" in visited(imported, "@tritonbench//T/scaled_add")
