"""The gate ``sanitize`` by the real program: each verdict, and silence about what is right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.chosen import judged_in_turn
from tests.tasks.declared import starters
from tests.testkit.cli import CliWorkspace, Ran

from .conftest import KERNEL, declare

LINE = "if (i < n) y[i] = 2.0f * x[i];"
END = "return hipGetLastError();"
TILE = "__shared__ float t[256]; t[threadIdx.x] = i < n ? x[i] : 0.0f;"
BEFORE = """
  __syncthreads();
  const float* p = t;
  if (i < n) y[i] = 2.0f * t[threadIdx.x] + 0.0f * p[int(threadIdx.x) - 1];"""
STALE = "{ float was = y[i]; y[i] = 2.0f * x[i]; if (was == 12345.0f) y[i] = was; }"


@dataclass(frozen=True)
class Mistake:
    """An edit of the honest kernel, and what has to be said of it."""

    name: str
    old: str
    new: str
    reason: str
    said: str

    @property
    def source(self) -> str:
        assert self.old in KERNEL
        return KERNEL.replace(self.old, self.new)


MISTAKES = (
    Mistake(
        "past_the_end",
        "i < n",
        "i <= n",
        "OUT_OF_BOUNDS",
        "double.hip:5:29: OUT_OF_BOUNDS in twice: read of 4 bytes, 0 bytes past the end of 'x' (",
    ),
    Mistake(
        "before_the_tile",
        LINE,
        TILE + BEFORE,
        "OUT_OF_BOUNDS",
        "4 bytes before __shared__ 't' (1024 bytes), by block (0,0,0) thread (0,0,0)",
    ),
    Mistake("reads_its_output", "y[i] = 2.0f * x[i];", STALE, "UNINITIALISED", "offset 0 of 'y' ("),
    Mistake(
        "forgets_a_barrier",
        LINE,
        f"{TILE} if (i < n) y[i] = 2.0f * t[threadIdx.x] + 0.0f * t[0];",
        "DATA_RACE",
        "and write by thread (0,0,0) at bad/forgets_a_barrier/solutions/expert/double.hip:5:",
    ),
    Mistake(
        "leaves_threads_behind",
        LINE,
        "if (i < n) { __syncthreads(); y[i] = 2.0f * x[i]; }",
        "DIVERGENT_BARRIER",
        "come here; the others have returned",
    ),
    Mistake(
        "gives_up",
        END,
        "return hipErrorNotSupported;",
        "LAUNCH_ERROR",
        "returned hipErrorNotSupported (801) in a batch of 1 call",
    ),
    Mistake(
        "hides",
        LINE,
        f"{LINE}\n#ifdef HIPCPU_SANITIZE\n#error not for you\n#endif\n",
        "COMPILE_ERROR",
        "cannot be instrumented: bad/hides/solutions/expert/double.hip:7:2: error: not for you",
    ),
)
RIGHT = {
    "plain": LINE,
    "uses_a_tile": f"{TILE} __syncthreads(); if (i < n) y[i] = 2.0f * x[i] + 0.0f * t[0];",
    "talks_in_a_wave": f"{TILE} __syncwarp(); float own = t[threadIdx.x ^ 1]; "
    "own = __shfl_xor(own, 1); if (i < n) y[i] = 2.0f * own;",
}


@pytest.fixture(scope="module")
def judged(kept_workspace: CliWorkspace) -> Ran:
    """All of them, in one build."""
    for mistake in MISTAKES:
        declare(kept_workspace, f"bad/{mistake.name}", solution=mistake.source)
    for name, body in RIGHT.items():
        declare(kept_workspace, f"good/{name}", solution=KERNEL.replace(LINE, body))
    return kept_workspace.run("test", "//...", "--gates=sanitize", "--json")


def entry(ran: Ran, name: str) -> dict[str, Any]:
    (found,) = [e for e in ran.json["targets"] if e["task"].endswith(f":{name}")]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_fails_with_its_reason(judged: Ran, mistake: Mistake) -> None:
    found = entry(judged, mistake.name)

    assert (found["verdict"], found["reason"]) == ("FAIL", mistake.reason)
    assert mistake.said in found["summary"]


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(judged: Ran, name: str) -> None:
    found = entry(judged, name)

    assert (found["verdict"], found["reason"]) == ("PASS", "")
    assert "nothing found in" in found["summary"]


def test_it_is_asked_for_and_changes_no_score(quick: CliWorkspace) -> None:
    """A mistake that no result shows is reported beside the score, which is as it was."""
    (mistake,) = [mistake for mistake in MISTAKES if mistake.name == "reads_its_output"]
    declare(quick, "double", solution=mistake.source)

    usual = quick.run("test", "//double", "--json")
    asked = quick.run("test", "//double", "--gates=+sanitize", "--json")

    assert not any("sanitize" in label for label in usual.executed)
    assert "//double:double.sanitize.compile" in asked.executed
    assert (usual.code, asked.code) == (0, 3)
    assert asked.gate("sanitize")["verdict"] == "FAIL"
    assert asked.gate("score")["key"] == usual.gate("score")["key"]


def test_a_source_that_does_not_compile_is_not_instrumented(quick: CliWorkspace) -> None:
    quick.write("double/solutions/expert/double.hip", KERNEL.replace("2.0f", "factor"))

    ran = quick.run("test", "//double", "--gates=compile,sanitize", "--json")

    assert ran.gate("compile")["verdict"] == "FAIL"
    assert ran.gate("sanitize")["verdict"] == "SKIPPED"


def test_tasks_without_it_are_named(tmp_path: Path) -> None:
    """A gate that nothing has is an error, and no empty column."""
    workspace = CliWorkspace.make(tmp_path)
    workspace.adopt("tasks/triton2triton/swiglu")

    ran = workspace.run("test", "//...", "--gates=+sanitize")

    assert ran.code == 2
    assert "sanitize is not available on cpu for //..." in ran.err


@pytest.mark.slow
def test_our_own_kernels_are_right(kept_workspace: CliWorkspace) -> None:
    """HIP starters' experts, two in turn: nothing is found in them."""
    hip = [task for task in starters() if task.family in {"hip2hip", "torch2hip"}]
    assert len(hip) >= 8
    with judged_in_turn("sanitized", hip) as tasks:
        for task in tasks:
            kept_workspace.adopt(task.label.removeprefix("//"))

        labels = [task.label for task in tasks]
        ran = kept_workspace.run("test", *labels, "--gates=sanitize", "--json")

        wrong = [entry for entry in ran.json["targets"] if entry["verdict"] != "PASS"]
        assert {entry["label"]: entry["summary"] for entry in wrong} == {}
        assert len(ran.json["targets"]) == len(tasks) > 0
