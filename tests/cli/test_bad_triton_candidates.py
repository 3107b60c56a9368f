"""Triton kernels that fail or cheat, judged by the real program."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.testkit.cli import CliWorkspace, Ran

from .conftest import QUICK, REFERENCE, TASK

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2.0 * tl.load(x + i, mask=i < n), mask=i < n)


def twice(x, y, *, n):
    kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
"""
STORE = "mask=i < n)\n\n"
LAUNCH = "    kernel[("


@dataclass(frozen=True)
class Candidate:
    """An edit of the honest kernel, and how the result is judged."""

    name: str
    gate: str
    verdict: str
    reason: str
    words: tuple[str, ...]
    old: str
    new: str


CANDIDATES = (
    Candidate(
        "is_no_python",
        "compile",
        "FAIL",
        "COMPILE_ERROR",
        ("double.py:11:",),
        "def twice(x, y, *, n):",
        "def twice(x, y, *, n:",
    ),
    Candidate(
        "reads_files",
        "compile",
        "FAIL",
        "UNSUPPORTED_FEATURE",
        ("double.py:1:", "import of 'os'"),
        "import triton\n",
        "import os\nimport triton\n",
    ),
    Candidate(
        "lacks_its_entry",
        "compile",
        "FAIL",
        "MISSING_ENTRY",
        ("'twice'",),
        "def twice(",
        "def thrice(",
    ),
    Candidate(
        "raises",
        "correctness",
        "FAIL",
        "EXCEPTION",
        ("raises/solutions/expert/double.py:13 in twice: ", "RuntimeError", "no such luck"),
        LAUNCH,
        f'    # Not in the module that runs.\n    raise RuntimeError("no such luck")\n{LAUNCH}',
    ),
    Candidate(
        "stores_out_of_bounds",
        "correctness",
        "REJECTED",
        "OUT_OF_BOUNDS",
        ("'y'", "1048", "program"),
        STORE,
        "mask=i < n + 1)\n\n",
    ),
    Candidate(
        "is_wrong",
        "correctness",
        "FAIL",
        "WRONG_RESULT",
        ("worst at [",),
        "2.0 *",
        "2.5 *",
    ),
    Candidate(
        "leaves_part_unwritten",
        "correctness",
        "FAIL",
        "INCOMPLETE_OUTPUT",
        ("first at [1047]",),
        STORE,
        "mask=i < n - 1)\n\n",
    ),
    Candidate(
        "changes_its_input",
        "correctness",
        "REJECTED",
        "INPUT_MUTATED",
        ("'x'",),
        LAUNCH,
        f"    x.zero_()\n{LAUNCH}",
    ),
)


def _declare(workspace: CliWorkspace, name: str, solution: str) -> None:
    declaration = (TASK + QUICK).replace("hip2hip", "triton2triton").replace(".hip", ".py")
    declaration = declaration.replace('"double"', f'"{name}"').replace("call_seconds = 0.2, ", "")
    workspace.write(f"{name}/BUILD.toml", declaration)
    workspace.write(f"{name}/double.py", KERNEL)
    workspace.write(f"{name}/reference.py", REFERENCE)
    workspace.write(f"{name}/solutions/expert/double.py", solution)


@pytest.fixture(scope="module")
def judged(kept_workspace: CliWorkspace) -> tuple[Ran, Ran]:
    """All candidates and the honest kernel in one build, and the same again as people see it."""
    workspace = kept_workspace
    _declare(workspace, "honest", KERNEL)
    for candidate in CANDIDATES:
        assert candidate.old in KERNEL
        _declare(workspace, candidate.name, KERNEL.replace(candidate.old, candidate.new, 1))
    flags = ("test", "//...", "--gates=compile,correctness")
    return workspace.run(*flags, "--json"), workspace.run(*flags)


def test_bad_candidates_fail_the_build_and_break_nothing(judged: tuple[Ran, Ran]) -> None:
    first, printed = judged
    assert (first.code, printed.code) == (3, 3)
    assert first.json["totals"]["infra"] == 0
    assert "Traceback" not in first.err + printed.out + printed.err
    assert " 0 executed;" in printed.out


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_a_bad_candidate_has_its_verdict_and_reason(
    judged: tuple[Ran, Ran], candidate: Candidate
) -> None:
    first, printed = judged
    label = f"//{candidate.name}:{candidate.name}.{candidate.gate}"
    (entry,) = [e for e in first.json["targets"] if e["label"] == label]

    assert (entry["verdict"], entry["reason"]) == (candidate.verdict, candidate.reason), entry
    (paragraph,) = [p for p in printed.out.split("\n\n") if p.startswith(f"{label}:")]
    for word in candidate.words:
        assert word in paragraph


def test_the_honest_twin_passes(judged: tuple[Ran, Ran]) -> None:
    entries = [e for e in judged[0].json["targets"] if e["task"] == "//honest:honest"]

    assert [entry["verdict"] for entry in entries] == ["PASS", "PASS"]
