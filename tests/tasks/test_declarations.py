"""What every task that ships declares: cheap checks of all, which compile and run nothing."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import pytest

from tests.tasks.declared import BOUNDS, STARTER, Declared, all_tasks, starters
from tests.tasks.headroom import headroom
from tests.tasks.mistakes import MISTAKES, SHORTCUTS, mistakes_in
from tests.tasks.table import PAGE, rendered, replaced

TASKS = all_tasks()
EVERY = pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.family}-{task.name}")
DISTINCT_CONFIGS = 3


def functions(source: str) -> dict[str, ast.FunctionDef]:
    """The functions of a module, by name."""
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def problems(task: Declared) -> list[str]:
    """What a declaration lacks; whether it is consistent is for the rule to say."""
    table, found = task.table, []
    if task.name != task.package.name or table["entry"] != task.name:
        found.append("target, entry and directory have different names")
    if len(task.bounds) != 1:
        found.append(f"tags: one of {', '.join(BOUNDS)} says what bounds it")
    if not task.patterns:
        found.append("tags: none says what kind of work it is")
    if not task.models and STARTER not in task.tags:
        found.append("shapes_from: no public model is named")
    if table.get("flops", "0") == "0":
        found.append("flops: there is no roofline without a count")
    if not table.get("platform_configs", {}).get("cpu"):
        found.append("platform_configs: there are none for cpu")
    if len(table["configs"]) < DISTINCT_CONFIGS:
        found.append(f"configs: fewer than {DISTINCT_CONFIGS}")
    shown = {config.get("dtype", table["dtypes"][0]) for config in table["configs"]}
    if unseen := set(table["dtypes"]) - shown:
        found.append(f"configs: none of dtype {', '.join(sorted(unseen))}")
    return found


def wrong_code(task: Declared) -> list[str]:
    """What the oracle or the kernel lacks, by its text."""
    names = functions((task.package / str(task.table["reference"])).read_text())
    wanted = ["inputs", "reference", *([] if task.own_kernel_runs else ["baseline"])]
    found = [f"reference.py: no function {name}" for name in wanted if name not in names]
    found += [f"reference.py: {name} has no docstring" for name in wanted
              if name in names and not ast.get_docstring(names[name])]  # fmt: skip
    return found + (_wrong_hip(task) if task.kernel.suffix == ".hip" else _wrong_triton(task))


def _wrong_hip(task: Declared) -> list[str]:
    source = task.kernel.read_text()
    symbols = [f"{task.table['entry']}_{dtype}" for dtype in task.table["dtypes"]]
    return [
        f"{task.kernel.name}: no symbol {symbol}"
        for symbol in symbols
        if not re.search(rf'extern "C" hipError_t {symbol}\(', source)
    ]


def _wrong_triton(task: Declared) -> list[str]:
    entry = functions(task.kernel.read_text()).get(str(task.table["entry"]))
    if entry is None:
        return [f"{task.kernel.name}: no function {task.table['entry']}"]
    by_position = [*task.table["inputs"], *task.table["outputs"]]
    by_keyword = {*task.table.get("scalars", {}), *task.table["dims"]}
    given = [argument.arg for argument in entry.args.args]
    named = {argument.arg for argument in entry.args.kwonlyargs}
    if given != by_position or named != by_keyword:
        return [f"{task.kernel.name}: the entry's arguments are not those declared"]
    return []


@EVERY
def test_a_declaration_says_all_that_the_table_and_a_roofline_need(task: Declared) -> None:
    assert problems(task) == []


@EVERY
def test_oracle_and_kernel_have_what_the_judge_calls(task: Declared) -> None:
    assert wrong_code(task) == []


@pytest.mark.parametrize(
    "task",
    [task for task in TASKS if task.own_kernel_runs and STARTER not in task.tags],
    ids=lambda task: f"{task.family}-{task.name}",
)
def test_every_given_kernel_has_a_mistake_to_be_rejected(task: Declared) -> None:
    """``test_suite.py`` has those judged that are of the tasks that a run chooses."""
    kernel = task.kernel.read_text()

    assert mistakes_in(task)
    assert all(mistake.made_in(kernel) != kernel for mistake in mistakes_in(task))


def test_a_declaration_with_gaps_is_rejected() -> None:
    table = {
        **TASKS[0].table,
        "name": "other",
        "tags": ["slow"],
        "flops": "0",
        "platform_configs": {},
        "configs": TASKS[0].table["configs"][:1],
        "shapes_from": [],
    }

    found = " / ".join(problems(replace(TASKS[0], table=table)))

    for what in ("different names", "bounds it", "public model", "roofline", "for cpu", "fewer"):
        assert what in found
    assert "no public model" not in " / ".join(problems(TASKS[0]))


def test_a_kernel_with_another_signature_is_rejected() -> None:
    for task in (TASKS[0], next(t for t in TASKS if t.family == "triton2triton")):
        other = replace(task, table={**task.table, "entry": "other"})
        assert [p for p in wrong_code(other) if "other" in p]
    dims = {**task.table["dims"], "depth": "1..2"}
    assert "not those declared" in wrong_code(replace(task, table={**task.table, "dims": dims}))[0]


def test_every_family_has_starters_and_every_starter_an_expert() -> None:
    assert {task.family for task in starters()} == {task.family for task in TASKS}
    assert [task.label for task in starters() if not task.has_expert] == []


def test_every_mistake_is_of_a_task() -> None:
    assert {*MISTAKES, *SHORTCUTS} <= {task.label.removeprefix("//tasks/") for task in TASKS}


def test_the_table_in_the_readme_is_that_of_the_tasks() -> None:
    """Made anew by ``python -m tests.tasks.table``."""
    page = PAGE.read_text()

    assert page == replaced(page, rendered(TASKS))
    assert page != replaced(page, rendered(TASKS[1:]))


@EVERY
def test_given_kernels_leave_room(task: Declared) -> None:
    """Within 15 % of an H200's roof nothing is left to win. PyTorch has no kernel to improve."""
    known = headroom(task)
    assert known is None or task.family == "torch2hip" or known.given <= 0.85


@EVERY
def test_headroom_is_that_of_a_config_of_today(task: Declared) -> None:
    known = headroom(task)
    words = set(known.config.split()) if known else set()
    sizes = [
        {f"{dim}={config[dim]}" for dim in task.table["dims"]} for config in task.table["configs"]
    ]
    assert not words or any(size <= words for size in sizes)
