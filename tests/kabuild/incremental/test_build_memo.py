"""Whatever changes on disk, the answer with a memory is the answer without one."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kabuild.base.errors import KabuildError
from kabuild.incremental.identity import identity
from kabuild.incremental.recall import recall
from kabuild.incremental.remember import remember
from kabuild.incremental.split_request import merge, plan_changed
from kabuild.loading.request import Request
from kabuild.model.task_result import TaskResult
from kabuild.pipeline import execute, load, plan
from kabuild.report.scoreboard import agent_end
from kabuild.report.views import write_views
from kabuild.store import Store
from kabuild.store.build_memo import BuildMemos
from tests.testkit.events import RecordingSink
from tests.testkit.examples import examples
from tests.testkit.generated import generate, generate_task

LATER_NS = 60 * 10**9
"""Builds are told that they begin later than they do, so that new files count as quiet."""

Board = dict[str, tuple[dict[str, tuple[object, ...]], *tuple[object, ...]]]
"""By task: what its gates said under which keys, and its figures."""


def board_of(results: Iterable[TaskResult]) -> Board:
    """Everything that a scoreboard shows of tasks, by label."""
    return {
        result.label.short: (
            {name: (gate.label, gate.word, gate.key) for name, gate in result.gates.items()},
            *(result.measured, result.score, result.hermetic, agent_end(result.agent)),
        )
        for result in results
    }


@dataclass
class World:
    """A workspace of small tasks and the store that its builds share."""

    root: Path
    store: Store

    def request(self, *patterns: str, **more: object) -> Request:
        return Request(patterns=patterns or ("//tasks/...",), cwd=self.root, **more)  # type: ignore[arg-type]

    def scratch(self, request: Request) -> Board | str:
        """The answer of a build that remembers nothing; or the error."""
        try:
            planned = plan(request, load(request), self.store)
        except KabuildError as error:
            return error.message
        summary = execute(request, planned, self.store, RecordingSink(), stop=threading.Event())
        return board_of(summary.table)

    def remembered(self, request: Request) -> tuple[Board | str, int]:
        """The answer with a memory, and how many tasks came from it."""
        began_ns = time.time_ns() + LATER_NS
        memories = BuildMemos(self.store.memories, self.store.seal)
        known = recall(request, self.root, memories)
        if known and known.is_complete:
            tasks = list(known.tasks())
            return board_of(tasks), len(tasks)
        try:
            planned, known = plan_changed(request, known, self.store)
        except KabuildError as error:
            return error.message, 0
        fresh = execute(request, planned, self.store, RecordingSink(), stop=threading.Event())
        built = merge(fresh, known) if known else fresh
        write_views(self.root / "out", fresh.settled.values(), self.store.cas.link_to)
        remember(request, memories, built, known, began_ns)
        return board_of(built.table), len(list(known.tasks())) if known else 0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    root = tmp_path / "work"
    generate(root, 3, shared=2, age=0)
    with Store.open(tmp_path / "store") as store:
        yield World(root, store)


def task(world: World, number: int) -> Path:
    return world.root / "tasks" / "family0" / f"t{number}"


def test_nothing_changed_is_answered_from_memory(world: World) -> None:
    request = world.request()
    first, recalled = world.remembered(request)
    assert recalled == 0
    second, recalled = world.remembered(request)
    assert recalled == 3
    assert second == first == world.scratch(request)


def test_one_changed_kernel_builds_its_own_task_and_no_other(world: World) -> None:
    request = world.request()
    world.remembered(request)
    (task(world, 1) / "kernel.hip").write_text("// better\n")
    board, recalled = world.remembered(request)
    assert recalled == 2
    assert board == world.scratch(request)
    assert world.remembered(request)[1] == 3, "and then it is remembered, too"


def test_a_failure_is_said_each_time_and_ends_when_it_is_mended(world: World) -> None:
    request = world.request()
    world.remembered(request)
    kernel = task(world, 2) / "kernel.hip"
    good = kernel.read_text()
    kernel.write_text("bad\n")
    for _ in range(2):
        board, recalled = world.remembered(request)
        assert isinstance(board, dict)
        assert board["//tasks/family0/t2"][0]["compile"][1] == "FAIL"
        assert recalled == 2
    kernel.write_text(good)
    assert world.remembered(request)[0] == world.scratch(request)


def test_another_request_has_its_own_memory(world: World) -> None:
    world.remembered(world.request())
    one = world.request("//tasks/family0/t1")
    board, recalled = world.remembered(one)
    assert (len(board), recalled) == (1, 0)
    gates = world.request(gates=("compile",))
    assert world.remembered(gates) == (world.scratch(gates), 0)


def test_every_field_of_a_request_tells_it_from_others(world: World) -> None:
    request = world.request()
    names = {identity(request, world.root)}
    for change in (
        {"platform": "cpu"},
        {"agent": "none"},
        {"gates": ("compile",)},
        {"tags": "a"},
        {"policy": "geomean"},
        {"samples": 7},
        {"hermetic": False},
        {"solution": Path("x")},
        {"salt_file": Path("y")},
    ):
        names.add(identity(world.request(**change), world.root))
    assert len(names) == 10


def test_views_that_are_gone_come_back(world: World) -> None:
    request = world.request()
    for _ in range(2):
        world.remembered(request)
    shutil.rmtree(world.root / "out" / "tasks" / "family0" / "t0" / "t0.perf")
    world.remembered(request)
    assert (world.root / "out/tasks/family0/t0/t0.perf/verdict.json").is_file()


def test_a_damaged_memory_costs_time_and_nothing_else(world: World) -> None:
    request = world.request()
    expected = world.remembered(request)[0]
    (path,) = world.store.memories.glob("*.json")
    data = path.read_bytes()
    for damaged in (b"", data[:-9], data.replace(b"PASS", b"FAIL"), data.replace(b"1", b"2", 1)):
        path.write_bytes(damaged[: len(damaged) - (damaged == data)])
        assert world.remembered(request)[0] == expected


def test_rules_and_workspace_concern_everything(world: World) -> None:
    request = world.request()
    for path in ("WORKSPACE.toml", "rules/copied/rule.py", "rules/copied/data/part0.txt"):
        world.remembered(request)
        file = world.root / path
        file.write_text(f"{file.read_text()}\n# more\n")
        board, recalled = world.remembered(request)
        assert recalled == 0, path
        assert board == world.scratch(request)


Change = Callable[[World, int], None]


def _edit(world: World, number: int) -> None:
    with (task(world, number % 3) / "kernel.hip").open("a") as file:
        file.write(f"// {number}\n")


def _break(world: World, number: int) -> None:
    (task(world, number % 3) / "reference.py").write_text("bad" if number % 2 else "good")


def _set_time_back(world: World, number: int) -> None:
    """An edit that leaves the modification time as it was."""
    kernel = task(world, number % 3) / "kernel.hip"
    if kernel.exists():
        status = kernel.stat()
        kernel.write_text(kernel.read_text()[::-1])
        os.utime(kernel, ns=(status.st_atime_ns, status.st_mtime_ns))


def _link(world: World, number: int) -> None:
    """The kernel becomes a link to another file of its package."""
    folder = task(world, number % 3)
    (folder / f"other{number % 2}.hip").write_text(f"// other {number}\n")
    (folder / "kernel.hip").unlink(missing_ok=True)
    (folder / "kernel.hip").symlink_to(f"other{number % 2}.hip")


def _mode(world: World, number: int) -> None:
    kernel = task(world, number % 3) / "kernel.hip"
    if kernel.exists():
        kernel.chmod(0o755 if number % 2 else 0o644)


def _remove(world: World, number: int) -> None:
    shutil.rmtree(task(world, number % 3), ignore_errors=True)


def _add(world: World, number: int) -> None:
    generate_task(world.root, 3 + number % 3)


def _nest(world: World, number: int) -> None:
    """A package inside a package."""
    inner = task(world, number % 3) / "inner"
    inner.mkdir(parents=True, exist_ok=True)
    for name in ("kernel.hip", "reference.py"):
        (inner / name).write_text(f"// {number}\n")
    (inner / "BUILD.toml").write_text(
        '[[copied]]\nname = "inner"\nkernel = "kernel.hip"\nreference = "reference.py"\n'
    )


def _rename(world: World, number: int) -> None:
    """The target gets another name, the package keeps its own."""
    file = task(world, number % 3) / "BUILD.toml"
    if file.exists():
        file.write_text(file.read_text().replace('name = "t', f'name = "u{number % 5}t', 1))


def _break_declaration(world: World, number: int) -> None:
    file = task(world, number % 3) / "BUILD.toml"
    if file.exists():
        file.write_text('[[copied]]\nname = "x"\nkernal = "kernel.hip"\n')


def _restore(world: World, number: int) -> None:
    generate_task(world.root, number % 3)


def _rule(world: World, number: int) -> None:
    (world.root / "rules/copied/data/part0.txt").write_text(f"{number}\n")


CHANGES = (
    _edit, _break, _set_time_back, _link, _mode, _remove, _add, _nest, _rename,
    _break_declaration, _restore, _rule,
)  # fmt: skip


@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(
        st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 9)), max_size=2),
        min_size=1,
        max_size=4,
    )
)
def test_any_change_gives_what_a_build_from_scratch_gives(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[tuple[Change, int]]]
) -> None:
    base = tmp_path_factory.mktemp("any")
    generate(base / "work", 3, shared=2, age=0)
    with Store.open(base / "store") as store:
        world = World(base / "work", store)
        request = world.request()
        world.remembered(request)
        for changes in steps:
            for change, number in changes:
                with suppress(FileNotFoundError):  # an earlier change removed it
                    change(world, number)
            assert world.remembered(request)[0] == world.scratch(request)
