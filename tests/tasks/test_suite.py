"""The tasks that a run chooses, judged by the program: admitted, right, compiled for an AMD GPU.

No clock decides anything here: perf is left to ``kabuild test``, ``make demo`` and devices.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tasks.chosen import (
    MOST,
    SAMPLE,
    Choice,
    choose,
    digest,
    every,
    judged_in_turn,
    read_record,
    to_record,
    turn,
)
from tests.tasks.declared import Declared, all_tasks
from tests.tasks.mistakes import mistakes_in
from tests.testkit.cli import CliWorkspace, Ran
from tests.testkit.kept import ROOT
from tests.testkit.runtime import judged_store

GATES = "--gates=compile,correctness,unseen"
PROCESSOR = "--platform=rocm:gfx942"
REJECTING = ("FAIL", "REJECTED")
STAGES = {"admission", "none", "expert", "mistakes", "gpu"}
TIMEOUT = 7200.0
LABELS = {task.label: task for task in all_tasks()}
MANY = {f"//tasks/f/t{number}": f"digest {number}" for number in range(40)}


class Suite:
    """One run: what is judged in it, in a workspace with a store that is kept."""

    def __init__(self, workspace: CliWorkspace, choice: Choice) -> None:
        self.workspace = workspace
        self.tasks = [LABELS[label] for label in choice.labels]
        self.failed: set[str] = set()
        self.begun: set[str] = set()

    @property
    def whole(self) -> bool:
        """Whether no stage was left out, as ``pytest -k`` does."""
        return self.begun == STAGES

    def run(self, *arguments: str) -> Ran:
        """Run a command with ``--json``; a label with a verdict other than PASS has failed."""
        ran = self.workspace.run(*arguments, "--json", timeout=TIMEOUT)
        for entry in ran.json["targets"]:
            if entry["verdict"] != "PASS":
                self.failed.add(entry["task"].partition(":")[0])
        return ran


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Suite]:
    """The tasks of this run; those that pass count as judged afterwards."""
    record = ROOT / "tasks.json"  # for all versions of kabuild
    recorded = read_record(record)
    digests = {label: digest(task.package) for label, task in LABELS.items()}
    choice = choose(digests, recorded, turn(), every=every())
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\ntasks {choice}")
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("suite"), judged_store())
    for label in choice.labels:
        workspace.adopt(label.removeprefix("//"))
    made = Suite(workspace, choice)
    yield made
    if made.whole:
        known = to_record(digests, recorded, choice, sorted(made.failed))
        record.write_text(json.dumps(known, indent=1))


def shown(ran: Ran) -> dict[str, str]:
    """What did not pass, and why."""
    return {
        entry["label"]: f"{entry['verdict']} {entry['reason']}: {entry['summary']}"
        for entry in ran.json["targets"]
        if entry["verdict"] != "PASS"
    }


@pytest.mark.slow
def test_chosen_tasks_are_admitted(suite: Suite) -> None:
    suite.begun.add("admission")
    ran = suite.run("validate", *(task.label for task in suite.tasks), "--samples=24")

    assert shown(ran) == {}
    assert len(ran.json["targets"]) == len(suite.tasks)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["none", "expert"])
def test_chosen_kernels_pass_all_gates_without_a_clock(suite: Suite, agent: str) -> None:
    def judged(task: Declared) -> bool:
        return task.has_expert if agent == "expert" else task.own_kernel_runs

    suite.begun.add(agent)
    labels = [task.label for task in suite.tasks if judged(task)]
    if not labels:
        pytest.skip("no task of this run has such a kernel")

    ran = suite.run("test", *labels, f"--agent={agent}", GATES)

    assert shown(ran) == {}
    assert len(ran.json["targets"]) == 3 * len(labels)


@pytest.mark.slow
def test_mistakes_in_chosen_kernels_are_rejected(suite: Suite) -> None:
    suite.begun.add("mistakes")
    accepted = []
    for task in suite.tasks:
        for mistake in mistakes_in(task):
            wrong = mistake.made_in(task.kernel.read_text())
            file = suite.workspace.write(f"wrong/{task.family}/{task.kernel.name}", wrong)
            gates = ("--gates=compile,correctness", "--json")
            ran = suite.workspace.run("test", task.label, f"--solution={file}", *gates)
            verdicts = {entry["gate"]: entry["verdict"] for entry in ran.json["targets"]}
            if verdicts["compile"] != "PASS" or verdicts["correctness"] not in REJECTING:
                accepted.append(f"{task.label}: {verdicts}")
                suite.failed.add(task.label)

    assert accepted == []


@pytest.mark.slow
def test_chosen_kernels_compile_for_a_gpu(suite: Suite) -> None:
    suite.begun.add("gpu")
    labels = [f"{task.label}:{task.name}.compile" for task in suite.tasks if task.own_kernel_runs]
    if not labels:
        pytest.skip("no task of this run has such a kernel")

    ran = suite.run("test", *labels, "--agent=none", PROCESSOR)

    assert shown(ran) == {}
    assert len(ran.json["targets"]) == len(labels)
    assert not [e for e in ran.json["targets"] if "not all" in e["summary"]]


def test_what_changed_and_a_sample_in_turn_are_chosen() -> None:
    recorded = {**MANY, "//tasks/f/t7": "another digest"}

    first = choose(MANY, recorded, "one commit", every=False)
    same = choose(MANY, recorded, "one commit", every=False)
    other = choose(MANY, recorded, "another commit", every=False)

    assert first == same
    assert first.changed == ("//tasks/f/t7",)
    assert len(first.sample) == SAMPLE
    assert first.sample != other.sample


def test_a_first_run_judges_the_sample_alone() -> None:
    assert len(choose(MANY, None, "x", every=False).labels) == SAMPLE
    assert set(choose(MANY, None, "x", every=True).labels) == set(MANY)


def test_many_changes_are_judged_over_several_runs() -> None:
    recorded: dict[str, str] = {}
    judged: list[str] = []
    for number in range(-(-len(MANY) // MOST)):
        choice = choose(MANY, recorded, str(number), every=False)
        judged += choice.changed
        recorded = to_record(MANY, recorded, choice, failed=[])

    assert sorted(judged) == sorted(MANY)
    assert choose(MANY, recorded, "x", every=False).changed == ()


def test_what_failed_is_judged_again() -> None:
    recorded = {**MANY, "//tasks/f/t3": "before"}
    choice = choose(MANY, recorded, "x", every=False)
    after = to_record(MANY, recorded, choice, failed=["//tasks/f/t3"])

    assert choose(MANY, after, "x", every=False).changed == ("//tasks/f/t3",)


def test_a_failing_sample_is_judged_again_although_it_did_not_change() -> None:
    choice = choose(MANY, MANY, "x", every=False)
    after = to_record(MANY, MANY, choice, failed=choice.sample[:1])

    assert choose(MANY, after, "x", every=False).changed == choice.sample[:1]


def test_what_is_judged_in_turn_is_judged_again_unless_it_was_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.tasks.chosen.ROOT", tmp_path)
    tasks, record = all_tasks(), tmp_path / "kind.json"
    with judged_in_turn("kind", tasks) as first:
        assert record.exists() is False
    record.write_text(record.read_text().replace(digest(tasks[0].package), "before"))

    with pytest.raises(ValueError, match="wrong"), judged_in_turn("kind", tasks) as second:
        raise ValueError("wrong")
    with judged_in_turn("kind", tasks) as third:
        pass
    with judged_in_turn("kind", tasks) as fourth:
        pass

    assert len(first) == len(fourth) == len({*tasks} if every() else {*first})
    assert tasks[0] in second
    assert second == third
    assert every() or {*third} == {tasks[0], *fourth}


def test_every_edit_of_a_task_changes_its_digest(tmp_path: Path) -> None:
    (tmp_path / "BUILD.toml").write_text("a")
    before = digest(tmp_path)
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "k.hip").write_text("b")

    assert digest(tmp_path) != before
