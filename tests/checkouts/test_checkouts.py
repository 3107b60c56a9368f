"""Real checkouts of public benchmarks: ``make test-imports PATHS="kernelbench=../KernelBench"``.

``GATES=compile,correctness,perf,unseen`` judges the original solutions in all gates, which takes
hours. Nothing here runs in CI, which has no checkouts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from kabuild.imports.adapter import find_adapter
from kabuild.loading.import_lock import ImportLock, read_import_lock
from tests.testkit.cli import CliWorkspace

from .known import FAST, known

FLOORS = {
    "aka": 180,
    "kernelbench": 245,
    "robust_kbench": 215,
    "gpu_mode": 30,
    "sol_execbench": 19,
    "flashinfer_bench": 1,
}
"""How many tasks of a benchmark have to be imported."""

HOURS = 6 * 3600.0
GATES = os.environ.get("KABUILD_CHECKOUT_GATES", "") or FAST
"""In which the solutions that tasks came with are judged."""

GIVEN = dict(pair.split("=", 1) for pair in os.environ.get("KABUILD_CHECKOUTS", "").split())


@dataclass(frozen=True)
class Checkout:
    """A checkout whose tasks were imported into a workspace of its own."""

    adapter: str
    path: Path
    workspace: CliWorkspace

    @property
    def lock(self) -> ImportLock:
        """What the import found."""
        name = f"imports/{self.adapter}.lock.toml"
        return read_import_lock(self.workspace.root / name, name)


@pytest.fixture(
    scope="module", params=GIVEN or [pytest.param("", marks=pytest.mark.skip("no PATHS"))]
)
def checkout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One of the checkouts that PATHS names."""
    adapter, path = request.param, Path(GIVEN[request.param]).resolve()
    workspace = CliWorkspace.make(tmp_path_factory.mktemp(adapter))
    ran = workspace.start("import", adapter, str(path), timeout=HOURS)
    assert ran.code == 0, ran.err
    return Checkout(adapter, path, workspace)


def test_every_task_is_imported_or_has_a_class_and_a_sentence(checkout: Checkout) -> None:
    adapter, lock = find_adapter(checkout.workspace.root, checkout.adapter), checkout.lock

    assert {task.name for task in adapter.tasks(checkout.path)} == {t.name for t in lock.tasks()}
    for name in lock.left_out():
        absent = lock.task(name).left_out
        assert absent is not None
        assert absent.reason not in {"CAPTURE_FAILED", "DOES_NOT_LOAD"}, (name, absent)
        assert len(absent.why.split()) > 3, name
    assert len(lock.names()) >= FLOORS.get(checkout.adapter, 1), lock.left_out()


def test_importing_again_runs_nothing_and_writes_the_same(checkout: Checkout) -> None:
    ran = checkout.workspace.start("import", "--check", f"@{checkout.adapter}", timeout=HOURS)

    assert (ran.code, ran.executed) == (0, set()), ran.err


def test_every_imported_task_passes_with_the_solution_that_it_came_with(
    checkout: Checkout,
) -> None:
    what = (f"@{checkout.adapter}//...", "--agent=none", "--keep_going", "--json")
    ran = checkout.workspace.start("test", *what, f"--gates={GATES}", timeout=HOURS)

    failed = [(e["label"], e["reason"]) for e in ran.json["targets"] if e["verdict"] != "PASS"]
    assert (ran.code, failed) == (0, []), ran.err


def test_known_solutions_are_judged_as_what_they_are(checkout: Checkout) -> None:
    differs = []
    for one in known(checkout.adapter, checkout.path):
        checkout.workspace.write("known.py", one.text)
        flags = ("--solution=known.py", f"--gates={FAST}", "--json")
        ran = checkout.workspace.start("test", f"@{checkout.adapter}//{one.task}", *flags)
        gate = ran.gate("correctness")
        right = gate["reason"] in one.reasons if one.reasons else gate["verdict"] == "PASS"
        if not right:
            differs.append((one.name, gate["verdict"], gate["reason"], gate["summary"]))
    assert not differs
