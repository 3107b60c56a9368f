"""What adapters list of odd checkouts; nothing of a benchmark runs here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kabuild.base.errors import LoadError, Reason, UsageError
from kabuild.imports.adapter import Adapter, Listed, find_adapter
from kabuild.loading.checkout import Checkout
from kabuild.model.label import names_package

TASK = '{"name": "task.py", "source": "../task.py"}, {"name": "eval.py", "source": "eval.py"}'
CONFIG = "candidate:\n  editable:\n    - source/k.py\n"
TOY = """
TERMS = {"licence": "MIT", "redistribute": True}
MARK = "."
TASKS = ("*.py",)
def task(checkout, path):
    return RETURNED
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def listed(adapter: Adapter, root: Path) -> dict[str, Listed]:
    return {task.name: task for task in adapter.tasks(root)}


def shipped(name: str) -> Adapter:
    return find_adapter(Path("/nowhere"), name)


@pytest.mark.parametrize(
    ("adapter", "files", "name", "found", "tags"),
    [
        (
            "kernelbench",
            ["KernelBench/level1/2_B.py", "src/kernelbench/eval.py"],
            "level1/2_B",
            ["KernelBench/level1/2_B.py", "src/kernelbench/eval.py"],
            ["level1"],
        ),
        (
            "multikernelbench",
            ["reference/npukernelbench_1/2_b.py", "reference/matmul/"],
            "npukernelbench_1/2_b",
            ["reference/npukernelbench_1/2_b.py", "reference/npukernelbench_1/2_b.json"],
            ["npukernelbench_1"],
        ),
        (
            "autokernel",
            ["kernels/cuda/mm.py", "bench.py"],
            "cuda/mm",
            ["kernels/cuda/mm.py", "bench.py", "reference.py"],
            ["cuda"],
        ),
        (
            "robust_kbench",
            ["tasks/a/b/func_forward.py", "tasks/a/b/2_c.py", "robust_kbench/utils.py"],
            "a/b",
            [
                "tasks/a/b/func_forward.py",
                "tasks/a/b/config_forward.json",
                "tasks/a/b/2_c.py",
                "robust_kbench/utils.py",
            ],
            ["forward", "b"],
        ),
        (
            "sol_execbench",
            ["data/.x/definition.json", "data/y/definition.json", "src/sol_execbench/core/"],
            "data/y",
            ["data/y/definition.json"],
            ["data"],
        ),
        (
            "flashinfer_bench",
            ["set/definitions/op/a.json", "set/workloads/op/a.jsonl", "flashinfer_bench/bench/"],
            "set/op/a",
            ["set/definitions/op/a.json", "set/workloads/op/a.jsonl"],
            ["set"],
        ),
        (
            "tritonbench",
            ["data/TritonBench_T_v1/add.py"],
            "T/add",
            ["data/TritonBench_T_v1/add.py"],
            ["T"],
        ),
        (
            "gpu_mode",
            [f"problems/pmpp_v2/a/task.yml={TASK}"],
            "pmpp_v2/a",
            [
                *("problems/pmpp_v2/a/reference.py", "problems/pmpp_v2/a/task.yml"),
                *("problems/pmpp_v2/task.py", "problems/pmpp_v2/a/eval.py"),
            ],
            ["pmpp_v2"],
        ),
        (
            "aka",
            [
                f"tasks/triton2triton/vllm/a/config.yaml={CONFIG}",
                "tasks/triton2triton/vllm/a/scripts/task_runner.py",
            ],
            "triton2triton/vllm/a",
            [
                "tasks/triton2triton/vllm/a/source/k.py",
                "tasks/triton2triton/vllm/a/scripts/task_runner.py",
                "tasks/triton2triton/vllm/a/config.yaml",
            ],
            ["triton2triton", "vllm"],
        ),
    ],
)
def test_each_adapter_lists_its_tasks_with_their_files(
    tmp_path: Path, adapter: str, files: list[str], name: str, found: list[str], tags: list[str]
) -> None:
    for text in files:
        path, _, content = text.partition("=")
        if path.endswith("/"):
            (tmp_path / path).mkdir(parents=True)
        else:
            write(tmp_path, {path: content})

    assert listed(shipped(adapter), tmp_path) == {name: Listed(name, tuple(found), tuple(tags))}


def test_problems_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = ["level2/1_A", "level1/10_A", "level1/9_B", "level1/9_A"]
    write(tmp_path, {f"KernelBench/{name}.py": "" for name in names})

    found = [*listed(shipped("kernelbench"), tmp_path)]

    assert found == ["level1/9_A", "level1/9_B", "level1/10_A", "level2/1_A"]


@pytest.mark.parametrize(
    ("adapter", "mark", "file"),
    [
        ("gpu_mode", "problems/pmpp_v2", "problems/pmpp_v2/x/task.yml"),
        ("aka", "tasks/triton2triton", "tasks/triton2triton/x/config.yaml"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device", "latin", "directory", "outside"])
def test_a_declaration_that_cannot_be_read_leaves_its_task_out(
    tmp_path: Path, adapter: str, mark: str, file: str, kind: str
) -> None:
    good = str(Path(file).parent.with_name("good") / Path(file).name)
    root = write(tmp_path / "bench", {good: "", f"{mark}/readme": ""})
    (root / file).parent.mkdir(parents=True)
    match kind:
        case "pipe":
            os.mkfifo(root / file)
        case "device":
            (root / file).symlink_to("/dev/zero")
        case "latin":
            (root / file).write_bytes(b"\xff\xfe")
        case "directory":
            (root / file).mkdir()
        case "outside":
            (root / file).symlink_to(write(tmp_path, {"secret": ""}) / "secret")

    tasks = listed(shipped(adapter), root)

    absent = tasks[file].absent
    assert absent is not None
    assert absent.reason == "UNREADABLE"
    assert absent.why.startswith(f"{file} cannot be read: ")
    assert [task.absent for name, task in tasks.items() if name != file] == [None]


def test_names_that_are_no_packages_are_changed_and_stay_distinct(tmp_path: Path) -> None:
    stems = ["2_a b", "2_a_b", "2_a\tb", "3_é", "4_\x1b[31m", ".5", "6" * 250, "7_ok"]
    write(tmp_path, {f"KernelBench/level1/{stem}.py": "" for stem in stems})
    (tmp_path / os.fsdecode(b"KernelBench/level1/8_\xff.py")).touch()

    tasks = listed(shipped("kernelbench"), tmp_path)

    assert len(tasks) == len(stems) + 1
    assert all(map(names_package, tasks))
    files = {task.files[0]: name for name, task in tasks.items() if task.files}
    assert files["KernelBench/level1/2_a_b.py"] == "level1/2_a_b"
    assert files["KernelBench/level1/2_a b.py"].startswith("level1/2_a_b-")
    assert files["KernelBench/level1/7_ok.py"] == "level1/7_ok"
    (unnamed,) = (task for task in tasks.values() if not task.files)
    assert unnamed.absent is not None
    assert (unnamed.absent.reason, unnamed.absent.why) == (
        "UNREADABLE",
        "the name of a file of it is not UTF-8",
    )


@pytest.mark.parametrize(
    "returned",
    [
        "1 / 0",
        "5",
        "{}",
        "{'name': 5, 'files': [path], 'tags': []}",
        "{'name': path, 'files': path, 'tags': []}",
        "{'name': path, 'files': [], 'tags': []}",
        "{'name': path, 'files': [path], 'tags': [path, None]}",
    ],
)
def test_an_adapter_that_fails_at_one_task_leaves_that_out(tmp_path: Path, returned: str) -> None:
    good = "{'name': path, 'files': [path], 'tags': []}"
    code = TOY.replace("RETURNED", f"{good} if 'good' in path else {returned}")
    workspace = write(tmp_path / "ws", {"rules/imports/adapters/toy.py": code})
    root = write(tmp_path / "bench", {"good.py": "", "other.py": ""})

    tasks = listed(find_adapter(workspace, "toy"), root)

    assert tasks["good.py"] == Listed("good.py", ("good.py",))
    absent = tasks["other.py"].absent
    assert absent is not None
    assert absent.reason == "ADAPTER_FAILED"
    assert absent.why.startswith("the adapter fails at other.py: ")


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ('("*.py",)', "5"),
        ('("*.py",)', '("/x",)'),
        ('("*.py",)', '("",)'),
        ('"."', "3"),
        ("def task", "def tasks"),
        ('"licence"', '"license"'),
        ("TERMS", "raise ValueError\nTERMS"),
    ],
)
def test_an_adapter_that_fails_as_a_whole_is_one_error(tmp_path: Path, text: str, by: str) -> None:
    file = "rules/imports/adapters/toy.py"
    workspace = write(tmp_path / "ws", {file: TOY.replace(text, by)})

    with pytest.raises(LoadError, match=r"the adapter (fails|is incomplete): ") as caught:
        find_adapter(workspace, "toy").tasks(write(tmp_path / "bench", {"a.py": ""}))

    assert caught.value.reason is Reason.BAD_RULE
    assert str(caught.value.position) == str(workspace / file)


@pytest.mark.parametrize("files", [{"KernelBench/level1": ""}, {"KernelBench/level1/x.txt": ""}])
def test_a_checkout_without_tasks_is_an_error_that_says_what_was_looked_for(
    tmp_path: Path, files: dict[str, str]
) -> None:
    with pytest.raises(UsageError) as caught:
        shipped("kernelbench").tasks(write(tmp_path, files))

    assert "has no tasks of kernelbench: no file matches KernelBench/level[1-4]/*.py" in str(
        caught.value
    )


def test_what_an_adapter_gets_of_a_checkout_leads_nowhere_else(tmp_path: Path) -> None:
    """So that no adapter has to look after pipes, links and devices by itself."""
    public = [name for name in vars(Checkout) if not name.startswith("_")]

    assert public == ["read", "text", "has", "find"]
    assert str(tmp_path) not in repr(Checkout(tmp_path))
