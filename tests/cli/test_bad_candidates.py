"""HIP kernels that fail or cheat, judged by the real program: each verdict and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.testkit.cli import CliWorkspace, Ran

from .conftest import KERNEL, declare
from .hip_candidates import AT_COMPILE, AT_RUN, END, LIBC, RESULT, Candidate

CANDIDATES = (*AT_COMPILE, *AT_RUN)
TWINS = tuple(candidate for candidate in CANDIDATES if candidate.twin)
LATER = {"compile": ("correctness", "perf", "unseen"), "correctness": ("perf", "unseen")}


def _named(candidate: Candidate) -> str:
    return candidate.name


@dataclass(frozen=True)
class Judged:
    """All candidates, judged in one build, and the same again as people see it."""

    first: Ran
    printed: Ran

    def gates(self, name: str) -> dict[str, dict[str, Any]]:
        """The entries of one task by gate."""
        entries = self.first.json["targets"]
        return {e["gate"]: e for e in entries if e["task"].endswith(f"/{name}:{name}")}

    def paragraph(self, name: str) -> str:
        """What is printed about one task."""
        paragraphs = self.printed.out.split("\n\n")
        (found,) = [text for text in paragraphs if text.startswith(f"//bad/{name}:")]
        return found


def _judge(workspace: CliWorkspace, *arguments: str) -> Judged:
    first = workspace.run("test", *arguments, "--json")
    return Judged(first, workspace.run("test", *arguments))


@pytest.fixture(scope="module")
def bad(kept_workspace: CliWorkspace) -> Judged:
    for candidate in CANDIDATES:
        declare(kept_workspace, f"bad/{candidate.name}", solution=candidate.source)
    return _judge(kept_workspace, "//bad/...")


@pytest.fixture(scope="module")
def twins(kept_workspace: CliWorkspace) -> Judged:
    for candidate in TWINS:
        declare(kept_workspace, f"twin/{candidate.name}", solution=candidate.twin_source)
    return _judge(kept_workspace, "//twin/...", "--gates=compile,correctness")


def test_bad_candidates_fail_the_build_and_break_nothing(bad: Judged) -> None:
    assert (bad.first.code, bad.printed.code) == (3, 3)
    for ran in (bad.first, bad.printed):
        assert "Traceback" not in ran.out + ran.err
        assert "warning" not in ran.err
    assert bad.first.json["totals"]["infra"] == 0
    assert all(len(line) < 500 for line in bad.printed.out.splitlines())


def test_verdicts_on_bad_candidates_are_cached(bad: Judged) -> None:
    assert bad.printed.err == ""
    assert " 0 executed;" in bad.printed.out


@pytest.mark.parametrize("candidate", CANDIDATES, ids=_named)
def test_a_bad_candidate_has_its_verdict_and_reason(bad: Judged, candidate: Candidate) -> None:
    gates = bad.gates(candidate.name)
    deciding = "compile" if candidate in AT_COMPILE else "correctness"

    found = gates[deciding]
    assert (found["verdict"], found["reason"]) == (candidate.verdict, candidate.reason), found
    for gate in LATER[deciding]:
        assert (gates[gate]["verdict"], gates[gate]["reason"]) == ("SKIPPED", "EARLIER_GATE")
    score = gates["score"]
    assert (score["verdict"], score["reason"]) == (candidate.verdict, candidate.reason)
    assert score["score"] == (0.0 if deciding == "compile" else 20.0)
    assert score["speedup"] is None


@pytest.mark.parametrize("candidate", CANDIDATES, ids=_named)
def test_people_read_what_was_wrong_and_how_to_see_it_again(
    bad: Judged, candidate: Candidate
) -> None:
    paragraph = bad.paragraph(candidate.name)

    assert f"{candidate.verdict} ({candidate.reason})" in paragraph
    for word in candidate.words:
        assert word in paragraph
    gate = "compile" if candidate in AT_COMPILE else "correctness"
    target = f"//bad/{candidate.name}:{candidate.name}.{gate}"
    assert paragraph.endswith(f"rerun it with: kabuild test --nocache_test_results {target}")


@pytest.mark.parametrize("candidate", TWINS, ids=_named)
def test_its_benign_twin_passes(twins: Judged, candidate: Candidate) -> None:
    verdicts = {gate: entry["verdict"] for gate, entry in twins.gates(candidate.name).items()}

    assert verdicts == {"compile": "PASS", "correctness": "PASS"}


def test_an_honest_candidate_passes_every_gate(quick: CliWorkspace) -> None:
    ran = quick.run("test", "//double", "--json")

    assert ran.code == 0, ran.out
    assert [entry["verdict"] for entry in ran.json["targets"]] == ["PASS"] * 5
    score = ran.gate("score")
    assert score["speedup"] > 0
    assert score["score"] == pytest.approx(120 + 100 * score["speedup"])


def test_a_solution_is_judged_instead_of_the_agents(quick: CliWorkspace) -> None:
    quick.write("mine/wrong.hip", KERNEL.replace("2.0f", "2.5f"))

    ran = quick.run("test", "//double", "--solution=mine/wrong.hip", "--gates=compile,correctness")

    assert ran.code == 3
    assert "worst at [" in ran.out
    assert "expected " in ran.out
    assert "--solution=mine/wrong.hip --nocache_test_results //double:" in ran.out


def test_a_solution_that_does_not_compile_shows_its_own_line(quick: CliWorkspace) -> None:
    """The rewriter changes launches into calls, but the author reads the author's file."""
    broken = KERNEL.replace(END, "  return hipGetLastEror();").replace(LIBC, f"{LIBC}\n// x\n")
    line = next(i for i, text in enumerate(broken.splitlines(), 1) if "Eror" in text)
    quick.write("mine.hip", broken)

    ran = quick.run("test", "//double", "--solution=mine.hip", "--gates=compile")

    assert ran.code == 3
    assert f" mine.hip:{line}:10: error: " in ran.out
    assert "'hipGetLastEror'" in ran.out
    assert "return hipGetLastEror();" in ran.out
    assert "did you mean 'hipGetLastError'" in ran.out


def test_of_a_solution_directory_only_the_kernel_is_taken(quick: CliWorkspace) -> None:
    """A header beside the kernel is not there when the kernel is compiled."""
    quick.write("mine/double.hip", KERNEL.replace(LIBC, f'{LIBC}#include "smuggled.h"\n'))
    quick.write("mine/smuggled.h", "\n")
    flags = ("--solution=mine", "--gates=compile", "--json")

    refused = quick.run("test", "//double", *flags)
    quick.write("mine/double.hip", KERNEL)
    taken = quick.run("test", "//double", *flags)

    assert refused.gate("compile")["reason"] == "COMPILE_ERROR"
    assert "smuggled.h" in refused.gate("compile")["summary"]
    assert taken.gate("compile")["verdict"] == "PASS"


def test_a_solution_without_the_kernel_is_named(quick: CliWorkspace) -> None:
    quick.write("mine/single.hip", KERNEL)

    ran = quick.run("test", "//double", "--solution=mine")

    assert ran.code == 2
    assert "--solution: the directory 'mine' has no file 'double.hip'" in ran.err
    assert "it has: single.hip; to judge one of these" in ran.err


def test_an_error_names_the_file_that_a_person_can_open(quick: CliWorkspace) -> None:
    """As it was typed, from wherever; the key is of the content, so that all share one result."""
    broken = KERNEL.replace("2.0f", "factor")
    quick.write("mine/double.hip", broken)
    quick.write("bad.hip", broken).chmod(0o755)
    quick.write("double/solutions/expert/double.hip", broken)
    absolute = str(quick.root / "bad.hip")
    command = ("test", "//double", "--gates=compile")

    first = quick.run(*command, "--solution=mine")
    others = {
        "bad.hip": quick.run(*command, "--solution=bad.hip"),
        "../bad.hip": quick.run(*command, "--solution=../bad.hip", cwd="double"),
        "./bad.hip": quick.run(*command, "--solution=./bad.hip"),
        absolute: quick.run(*command, f"--solution={absolute}"),
        "double/solutions/expert/double.hip": quick.run(*command),
        "solutions/expert/double.hip": quick.run(*command, cwd="double"),
    }
    quick.write("double/double.hip", broken)
    own = quick.run(*command, "--agent=none")

    assert "  | mine/double.hip:5:21: error: " in first.out
    for name, ran in others.items():
        assert f"  | {name.removeprefix('./')}:5:21: error: " in ran.out
        assert not ran.executed
    assert "  double/double.hip:5:21: error: " in own.out


def test_a_solution_is_for_one_task(quick: CliWorkspace) -> None:
    declare(quick, "other")

    ran = quick.run("test", "//...", "--solution=double/double.hip")

    assert (ran.code, ran.out) == (2, "")
    assert "a solution is for one task, but 2 match" in ran.err


def test_a_task_whose_own_kernel_does_not_compile_is_broken(quick: CliWorkspace) -> None:
    """The task is at fault, not the candidate, and also where both are the same kernel."""
    quick.write("double/double.hip", KERNEL.replace(RESULT, "y[i] = factor * x[i];"))

    for flags in (("--agent=none",), (), ("--agent=none",)):
        ran = quick.run("test", "//double", *flags)

        assert ran.code == 1, ran.out
        assert "//double:double.baseline.compile: failed" in ran.out
        assert "double.hip:5:" in ran.out
        assert "'factor'" in ran.out


def test_a_misspelt_entry_is_the_mistake_of_its_task(quick: CliWorkspace) -> None:
    """The task's own kernel lacks it as well, so that no candidate is to blame."""
    build = quick.root / "double/BUILD.toml"
    misspelt = build.read_text().replace('"twice"', '"twcie"')
    assert "twcie" in misspelt
    build.write_text(misspelt)

    for flags in ((), ("--agent=none",), ("--solution=double/double.hip",)):
        ran = quick.run("test", "//double", "--gates=compile,correctness", *flags)

        assert ran.code == 1, ran.out
        assert "//double:double.baseline.compile: failed" in ran.out
        assert "double/double.hip:1:1: error: no function extern \"C\" 'twcie_f32'" in ran.out
        assert "MISSING_ENTRY" not in ran.out


def test_a_reference_that_ends_its_process_is_the_mistake_of_its_task(quick: CliWorkspace) -> None:
    reference = quick.root / "double/reference.py"
    head, tail = reference.read_text().split("def reference(x, **_):\n")
    text = f"{head}def reference(x, **_):\n    import os; os._exit(3)\n{tail}"
    reference.write_text(text)

    ran = quick.run("test", "//double", "--gates=compile,correctness", "--agent=none")

    line = 1 + text.splitlines().index("    import os; os._exit(3)")
    assert ran.code == 1, ran.out
    what = "reference() ended its process (exit code 3)"
    assert f"  double/reference.py:{line}: {what}" in ran.out
