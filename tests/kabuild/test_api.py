"""kabuild from Python: values for programs, on the command line's store."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import kabuild
from kabuild.api import Solution
from kabuild.base.errors import KabuildError
from kabuild.loading.request import Request
from kabuild.pipeline import load
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

TASK = "//tasks/family0/t0"


class Hostile(dict[str, str]):
    """A mapping of somebody's own, which can neither be read nor shown."""

    def items(self) -> Any:
        raise ZeroDivisionError

    __repr__ = items


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliWorkspace:
    generate(tmp_path / "work", 2, shared=1, age=0)
    rule = tmp_path / "work/rules/copied/rule.py"
    text = rule.read_text().replace('"kernel": ctx.attrs["kernel"]', '"kernel": handed_in(ctx)')
    rule.write_text(
        text.replace(
            "def implement(ctx):",
            "def handed_in(ctx):\n"
            "    return ctx.options.solution or ctx.attrs['kernel']\n\n\n"
            "def implement(ctx):",
        )
    )
    monkeypatch.setenv("KABUILD_CACHE", str(tmp_path / "store"))
    return CliWorkspace(tmp_path / "work", tmp_path / "store")


def test_a_solution_is_judged_from_its_text(workspace: CliWorkspace) -> None:
    done = kabuild.evaluate(TASK, "// mine\n", workspace=workspace.root)

    assert done.passed
    assert (done.task, done.speedup, done.score, done.cached) == (TASK, 2.0, 320.0, False)
    assert list(done.gates) == ["compile", "correctness", "perf", "unseen", "score"]
    assert done.problem is None


@pytest.mark.parametrize("mask", [0o777, 0o177, 0o022])
def test_a_umask_keeps_nobody_from_their_own_files(workspace: CliWorkspace, mask: int) -> None:
    before = os.umask(mask)
    try:
        done = kabuild.evaluate(TASK, "// mine\n", workspace=workspace.root, gates=("compile",))
        left = os.umask(mask)
    finally:
        os.umask(before)

    assert done.passed
    assert left == mask


def test_a_failing_solution_names_the_gate_that_decided(workspace: CliWorkspace) -> None:
    done = kabuild.evaluate(TASK, "bad\n", workspace=workspace.root, gates=("compile", "perf"))

    assert not done.passed
    assert done.problem is done["compile"]
    assert str(done.problem) == f"{TASK}:{TASK.rpartition('/')[2]}.compile FAIL (WRONG_RESULT)"
    assert (done["compile"].reason, done["perf"].reason) == ("WRONG_RESULT", "EARLIER_GATE")


def test_many_are_judged_in_order_and_equal_ones_once(workspace: CliWorkspace) -> None:
    texts = [f"// {n}\n" if n % 3 else "bad\n" for n in range(9)]
    with kabuild.Evaluator(workspace.root, jobs=2) as evaluator:
        first = list(evaluator.map(TASK, texts))
        again = list(evaluator.map(TASK, texts))

    assert [done.passed for done in first] == [bool(n % 3) for n in range(9)]
    assert [done.gates for done in again] == [done.gates for done in first]
    assert all(done.cached for done in again)


@pytest.mark.parametrize("text", ["/etc/passwd", "bad", ".", "mine.hip", ""])
def test_a_text_is_no_path(workspace: CliWorkspace, text: str) -> None:
    (workspace.root / "mine.hip").write_text("bad")
    done = kabuild.evaluate(TASK, text, workspace=workspace.root, gates=("compile",))

    assert done.passed == (text != "bad")


def test_a_bad_item_has_a_result_of_its_own(workspace: CliWorkspace) -> None:
    good, items = "// good\n", [Path("absent.hip"), {"../x": ""}, 7, Path("a\0b"), "bad\n"]
    endless: Iterable[Any] = itertools.chain([good, *items], itertools.repeat(good))
    with kabuild.Evaluator(workspace.root, jobs=2) as evaluator:
        done = list(itertools.islice(evaluator.map(TASK, endless), 7))

    first = done[0].error or done[0].problem
    assert [item.passed for item in done] == [True, *[False] * 5, True], first
    assert [item.error is None for item in done] == [True, *[False] * 4, True, True]
    assert "absent.hip" in str(done[1].error)
    assert not done[1].gates
    with pytest.raises(KabuildError, match=r"absent\.hip"):
        done[1]["compile"]


def test_numbers_are_bounded(workspace: CliWorkspace) -> None:
    request = Request((TASK,), workspace.root)
    for wrong in ({"jobs": 10**9}, {"jobs": 0}, {"samples": 10**9}, {"runs_per_gate": 10**9}):
        with pytest.raises(KabuildError, match="must be from 1 to"):
            load(replace(request, **wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("jobs", [0, -1, 10**30, 1.5, "4", True])
def test_an_evaluator_has_a_number_of_jobs(workspace: CliWorkspace, jobs: Any) -> None:
    with pytest.raises(KabuildError, match="jobs must be from 1 to"):
        kabuild.Evaluator(workspace.root, jobs=jobs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hermetic": "no"}, "hermetic must be True or False, got 'no'"),
        ({"fresh": 1}, "fresh must be True or False, got 1"),
        ({"platform": 3}, "platform must be a text, got 3"),
        ({"platform": "a" * 300}, "unknown platform"),
        ({"agent": b"none"}, "agent must be a text, got b'none'"),
        ({"salt_file": "a secret"}, "salt_file must be a Path, got 'a secret'"),
        ({"devices": (True,)}, "devices must be numbers of devices"),
        ({"devices": (-1,)}, "devices must be numbers of devices"),
        ({"devices": 0}, "devices must be numbers of devices"),
        ({"samples": float("nan")}, "samples must be from 1 to"),
        ({"agent": ""}, "agent must be a name, got ''"),
        ({"policy": ""}, "policy must be a name, got ''"),
        ({"platform": ""}, "unknown platform ''"),
        ({"platform": "cudaa"}, "unknown platform 'cudaa'"),
    ],
)
def test_options_have_the_types_that_they_declare(
    workspace: CliWorkspace, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(KabuildError, match=message):
        kabuild.evaluate(TASK, "// x\n", workspace=workspace.root, **options)


@pytest.mark.parametrize("options", [{"agent": ""}, {"policy": ""}, {"platform": "cudaa"}])
def test_an_evaluator_refuses_names_before_it_judges(
    workspace: CliWorkspace, options: dict[str, Any]
) -> None:
    with pytest.raises(KabuildError):
        kabuild.Evaluator(workspace.root, **options)


@pytest.mark.parametrize("nothing", [None, True, b"x", 5])
def test_no_kernel_is_judged_as_the_agents(workspace: CliWorkspace, nothing: Any) -> None:
    """As of a reply without code, which would be paid for what an expert wrote."""
    refused = "a solution must be a str, a Path or a mapping of names to str, not "
    with kabuild.Evaluator(workspace.root) as evaluator:
        assert evaluator.evaluate(TASK).passed, "left out, it is the agent's"
        with pytest.raises(KabuildError, match=refused):
            evaluator.evaluate(TASK, nothing)
        with pytest.raises(KabuildError, match=refused):
            kabuild.evaluate(TASK, nothing, workspace=workspace.root)
        one, two = evaluator.map(TASK, [nothing, "// x\n"])

    assert (one.passed, one.speedup, two.passed, two.error) == (False, None, True, None)
    assert isinstance(one.error, KabuildError)


def test_an_option_that_is_none_is_not_given(workspace: CliWorkspace) -> None:
    """Above all, None does not allow running without sandboxes."""
    nothing: Any = dict.fromkeys(kabuild.Options.__annotations__)
    with kabuild.Evaluator(workspace.root, **nothing) as evaluator:
        assert evaluator._request == Request((), workspace.root, jobs=1)
        assert evaluator.evaluate(TASK, "// x\n").passed


@pytest.mark.parametrize("gates", ["compile", b"compile", (1,), (("compile",),), 5, None])
def test_gates_are_names(workspace: CliWorkspace, gates: Any) -> None:
    with pytest.raises(KabuildError, match="gates are names, such as "):
        kabuild.evaluate(TASK, "// x\n", workspace=workspace.root, gates=gates)


@pytest.mark.parametrize(
    "place", ["a\0b", "\ud800", "a" * 5000, "loop", "nowhere", "file", None, 3]
)
def test_a_workspace_is_a_directory(tmp_path: Path, place: Any) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    given = tmp_path / place if isinstance(place, str) else place
    with pytest.raises(KabuildError, match=r"workspace .*: [a-zA-Z]"):
        kabuild.Evaluator(given)


@pytest.mark.parametrize("solutions", ["// one\n", b"//", {"kernel": "//"}, Path("a.hip"), 3, None])
def test_many_solutions_are_no_single_one(workspace: CliWorkspace, solutions: Any) -> None:
    with (
        kabuild.Evaluator(workspace.root) as evaluator,
        pytest.raises(KabuildError, match="map takes solutions, such as a list of strings"),
    ):
        next(evaluator.map(TASK, solutions))


def test_an_error_of_the_iterable_comes_after_the_results_before_it(
    workspace: CliWorkspace,
) -> None:
    def texts() -> Iterator[str]:
        yield from ("// 0\n", "bad\n", "// 2\n")
        raise ConnectionError("the model is gone")

    passed: list[bool] = []
    with kabuild.Evaluator(workspace.root, jobs=2) as evaluator:
        with pytest.raises(ConnectionError, match="the model is gone"):
            passed.extend(done.passed for done in evaluator.map(TASK, texts()))
        assert evaluator.evaluate(TASK, "// 0\n").passed

    assert passed == [True, False, True]


def test_a_closed_evaluator_says_so(workspace: CliWorkspace) -> None:
    with kabuild.Evaluator(workspace.root, jobs=1) as evaluator:
        begun = evaluator.map(TASK, (f"// {n}\n" for n in range(20)))
        assert next(begun).passed

    late = list(begun)
    assert {str(done.error) for done in late if not done.passed} == {
        "this Evaluator is closed: its 'with' statement has ended"
    }
    assert not late[-1].passed
    with pytest.raises(KabuildError, match="this Evaluator is closed"):
        evaluator.evaluate(TASK)
    with pytest.raises(KabuildError, match="this Evaluator is closed"):
        next(evaluator.map(TASK, ["//"]))


def test_the_command_line_finds_cached_what_python_judged(workspace: CliWorkspace) -> None:
    file = workspace.root / "mine.hip"
    file.write_text("// from a file\n")
    kabuild.evaluate(TASK, file, workspace=workspace.root)

    ran = workspace.run("test", TASK, "--solution=mine.hip")
    assert ran.code == 0
    assert not ran.executed


@pytest.mark.parametrize(
    ("task", "solution", "message"),
    [
        ("//tasks/family0/t9", "// x\n", "no package"),
        ("//tasks/...", "// x\n", "a solution is for one task"),
        (TASK, Path("absent.hip"), "no file or directory"),
        (TASK, {"../out.hip": "x\n"}, "not a path inside a solution"),
        (TASK, {"a": "x", "a/b": "y"}, "'a/b' of a solution cannot be written"),
        (TASK, {"a": 1}, "'a' of a solution cannot be written"),
        (TASK, "\udcff", "'kernel' of a solution cannot be written: .*surrogates"),
        (TASK, Path("a\0b"), "a null byte"),
        (TASK, {}, "a solution must be a str, a Path"),
        (None, "text", "a task is given by its label, not None"),
        (b"//a", "text", "a task is given by its label, not b"),
        (TASK, 7, "a solution must be a str, a Path"),
        (TASK, {".": "x"}, "'.' is not a path inside a solution"),
        (TASK, Hostile(kernel="x"), "the texts of a solution cannot be read: ZeroDivisionError"),
        (TASK, {"kernel": Hostile()}, "'kernel' of a solution cannot be written"),
        (Hostile(), "text", "a task is given by its label, not a value of type Hostile"),
    ],
)
def test_what_is_wrong_with_a_request_is_raised(
    workspace: CliWorkspace, task: str, solution: Solution, message: str
) -> None:
    with pytest.raises(KabuildError, match=message):
        kabuild.evaluate(task, solution, workspace=workspace.root)


def test_an_evaluation_takes_one_task(workspace: CliWorkspace) -> None:
    with pytest.raises(KabuildError, match="an evaluation takes one task"):
        kabuild.evaluate("//tasks/...", workspace=workspace.root)


def test_no_workspace_is_not_the_working_directory() -> None:
    with pytest.raises(KabuildError, match="workspace '': no such directory"):
        kabuild.Evaluator("")


def test_a_machine_that_fails_blames_no_solution(workspace: CliWorkspace) -> None:
    rule = workspace.root / "rules/copied/rule.py"
    rule.write_text(rule.read_text().replace('JUDGE + " cp $v', '"exit 9; cp $v'))
    with pytest.raises(kabuild.InfraFailureError, match="compile"):
        kabuild.evaluate(TASK, "// x\n", workspace=workspace.root)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("reference:7: no such dim", "tasks/family0/t0/reference.py:7: no such dim"),
        # Python writes warnings after the message, as of a coroutine that nobody awaited.
        ("reference:7: late; echo a warning", "tasks/family0/t0/reference.py:7: late"),
        (
            "reference:7: $(head -c 9000 /dev/zero | tr '\\\\0' x)",
            "tasks/family0/t0/reference.py:7: x",
        ),
        ("nothing known", "nothing known"),
    ],
)
def test_a_broken_reference_is_the_tasks_mistake(
    workspace: CliWorkspace, said: str, told: str
) -> None:
    rule = workspace.root / "rules/copied/rule.py"
    broken = f'"exec >&2; echo {said}; exit 4; cp $v'
    rule.write_text(rule.read_text().replace('JUDGE + " cp $v', broken))
    with pytest.raises(kabuild.BrokenTaskError) as caught:
        kabuild.evaluate(TASK, "// x\n", workspace=workspace.root)
    assert str(caught.value).startswith(f"{TASK}:t0.compile: {told}")
    assert len(str(caught.value)) < 5000


def test_options_are_those_of_a_request_with_their_types() -> None:
    """So that what a type checker accepts is accepted."""
    hints = get_type_hints(Request)

    assert get_type_hints(kabuild.Options) == {
        name: hints[name] for name in kabuild.Options.__annotations__
    }


def test_options_take_effect(workspace: CliWorkspace) -> None:
    kabuild.evaluate(TASK, "// x\n", workspace=workspace.root)

    assert kabuild.evaluate(TASK, "// x\n", workspace=workspace.root).cached
    again = kabuild.evaluate(TASK, "// x\n", workspace=workspace.root, read_cached_gates=False)
    assert not again.cached


def test_an_unknown_option_is_named(workspace: CliWorkspace) -> None:
    with pytest.raises(TypeError, match="unknown option 'platfrom'; did you mean 'platform'"):
        kabuild.evaluate(TASK, workspace=workspace.root, platfrom="cpu")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown option 'jbos'; did you mean 'jobs'"):
        kabuild.Evaluator(workspace.root, jbos=2)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"unknown option 'patterns'; known: platform, devices.*, jobs$"
    ):
        kabuild.Evaluator(workspace.root, patterns=())  # type: ignore[call-arg]
