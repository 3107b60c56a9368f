"""All gates of a task judged the same task, and took each side for what it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kabuild.base.errors import BundleError
from kabuild.bundle.agreement import check_agreement
from kabuild.bundle.manifest import Record
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.store.merkle import Directory, FileNode, build
from tests.testkit.bundles import RECORD

TASK = "//tasks/softmax"
ARGV = ("python3", "tools/gate.py", "spec.json")
SPEC: Mapping[str, Any] = {
    "candidate": {"abi": "hip", "path": "candidate/kernel.so"},
    "baseline": {"abi": "hip", "path": "baseline/kernel.so"},
    "signature": {"dims": ["rows"]},
    "space": {"rows": [1, 65536]},
    "configs": [{"rows": 64}],
    "compare": {},
    "salt": "public",
    "reference": "task/reference.py",
    "runner": "runner/hip-runner",
    "libraries": ["runtime/libhipcpu.so"],
}
FILES: Mapping[str, bytes] = {
    "candidate/kernel.so": b"elf",
    "baseline/kernel.so": b"slow elf",
    "task/reference.py": b"the oracle",
    "runner/hip-runner": b"runs",
    "runtime/libhipcpu.so": b"fibers",
}
Told = tuple[str, Mapping[str, Any], Mapping[str, bytes]]


def check(*gates: Told, argv: tuple[str, ...] = ARGV, **changes: Any) -> None:
    """Check gates of TASK, each with what its specification says and what it finds besides."""
    records: list[Record] = []
    roots: dict[Digest, Directory] = {}
    actions: dict[Digest, Action] = {}
    blobs: dict[Digest, bytes] = {}
    for gate, said, found in gates:
        spec = json.dumps({**SPEC, "gate": gate, **said}).encode()
        files = {**FILES, "spec.json": spec, **found}
        root = build((path, FileNode(Digest.of(data))) for path, data in files.items())
        blobs |= {Digest.of(data): data for data in files.values()}
        label = f"{TASK}:softmax.{gate}"
        own: dict[str, Any] = {"timed": gate == "perf", "task": TASK, "gate": gate, "label": label}
        key = Digest.of(label.encode())
        records.append(replace(RECORD, **{"key": key, "root": root.digest, **own, **changes}))
        roots[root.digest] = root
        actions[key] = Action(Label.parse(label), argv, (), (), Platform("cpu"))
    check_agreement(records, roots, actions, blobs.__getitem__)


def test_gates_that_were_told_the_same_agree() -> None:
    check(
        ("correctness", {"policy": {}}, {}),
        (
            "perf",
            {"policy": {"budget_seconds": 9}, "libraries": ["runtime/a.so"]},
            {"runtime/a.so": b""},
        ),
        ("sanitize", {"baseline": SPEC["candidate"]}, {"runtime/libhipcpu.so": b"watches"}),
        ("retention", {"libraries": [], "runner": ""}, {}),  # of a program that Python runs
    )


def test_what_an_oracle_is_the_baseline_of_is_no_mistake() -> None:
    check(("perf", {"baseline": {"abi": "torch", "path": "task/reference.py"}}, {}))


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ("baseline/kernel.so", "candidate/kernel.so", "it judged 'baseline/kernel.so'"),
        ("task/fast.so", "baseline/kernel.so", "it judged 'task/fast.so'"),
        ("candidate/../task/fast.so", "baseline/kernel.so", "it judged 'candidate/../task"),
        ("candidate/missing.so", "baseline/kernel.so", "it judged 'candidate/missing.so'"),
        ("/tmp/fast.so", "baseline/kernel.so", "it judged '/tmp/fast.so'"),
        ("", "baseline/kernel.so", "it judged ''"),
        ("candidate/kernel.so", "candidate/kernel.so", "it timed 'candidate/kernel.so' as the"),
        ("candidate/kernel.so", "baseline/../candidate/kernel.so", "it timed 'baseline/../cand"),
        ("candidate/kernel.so", "/tmp/slow.so", "it timed '/tmp/slow.so' as the baseline"),
    ],
)
def test_a_side_that_stands_for_another_is_refused(ours: str, theirs: str, said: str) -> None:
    """With the sides exchanged a slow kernel is fast, and a replay measures it again."""
    spec = {"candidate": {"path": ours}, "baseline": {"path": theirs}}
    with pytest.raises(BundleError, match=said):
        check(("perf", spec, {"task/fast.so": b"fast elf"}))


@pytest.mark.parametrize(
    "spec",
    [
        {"runner": "task/runner"},
        {"runner": "runner/missing"},
        {"runner": "runner/../task/runner"},
        {"runner": 5},
        {"launch_filter": "task/runner"},
        {"libraries": ["runtime/libhipcpu.so", "task/runner"]},
    ],
)
def test_a_runner_from_beside_the_task_is_refused(spec: Mapping[str, Any]) -> None:
    """There it would count as a file of the task's, and it writes the results."""
    with pytest.raises(BundleError, match="it ran the candidate with"):
        check(("correctness", spec, {"task/runner": b"elf"}))


@pytest.mark.parametrize("libraries", [5, "runtime/libhipcpu.so", {"a": 1}, [5], [[]]])
def test_libraries_of_a_wrong_type_are_refused(libraries: Any) -> None:
    with pytest.raises(BundleError, match="it ran the candidate with"):
        check(("correctness", {"libraries": libraries}, {}))


@pytest.mark.parametrize("side", [None, [], "candidate/kernel.so", {"path": ["x"]}, {"path": 5}])
def test_a_candidate_that_is_no_program_is_refused(side: Any) -> None:
    with pytest.raises(BundleError, match="it judged ''"):
        check(("correctness", {"candidate": side}, {}))


@pytest.mark.parametrize("named", ["other.json", "./other.json", "task//other", "task/./other"])
def test_the_specification_is_the_one_that_the_command_names(named: str) -> None:
    other = json.dumps({**SPEC, "candidate": SPEC["baseline"]}).encode()
    files = {"other.json": other, "task/other": other}
    with pytest.raises(BundleError, match=r"it judged 'baseline/kernel\.so'"):
        check(("perf", {}, files), argv=("python3", "tools/gate.py", named))


@pytest.mark.parametrize(
    "named", ["/proc/self/cwd/other.json", "task/../other.json", "--spec=/other.json", ".."]
)
def test_a_command_that_may_name_any_file_is_refused(named: str) -> None:
    with pytest.raises(BundleError, match=r"its command names '.*', which is not an input"):
        check(("perf", {}, {"other.json": b"{}"}), argv=("python3", "tools/gate.py", named))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("signature", {"dims": []}),
        ("space", {"rows": [1, 2]}),
        ("configs", [{"rows": 1}]),
        ("compare", {"y": "sorted"}),
        ("salt", "another"),
        ("reference", "task/lenient.py"),
    ],
)
def test_gates_of_one_task_judge_the_same_task(name: str, value: Any) -> None:
    with pytest.raises(BundleError, match=f"it was told another {name} than the task's other"):
        check(("correctness", {name: value}, {}), ("perf", {}, {}))


@pytest.mark.parametrize("path", ["task/reference.py", "baseline/kernel.so"])
def test_gates_of_one_task_have_one_oracle_and_one_baseline(path: str) -> None:
    """A lenient oracle would pass a wrong kernel, and another gate's is what a page shows."""
    with pytest.raises(BundleError, match=f"it was told another {path} than"):
        check(("correctness", {}, {path: b"lenient"}), ("perf", {}, {}))


def test_other_tasks_trials_and_actions_may_be_told_otherwise() -> None:
    check(("correctness", {"salt": "another", "candidate": {"path": "x"}}, {}), gate="")
