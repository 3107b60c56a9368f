"""What the machine or the harness gets wrong is never blamed on the candidate."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from run_support import (
    DOUBLING,
    ROOT,
    config,
    draws,
    is_doubled,
    module,
    native,
    run_doubling,
)

import namespaces  # type: ignore[import-not-found] # isort: skip

from runners.launcher import Launcher  # isort: skip
from base.program import MachineFault  # isort: skip

HONEST = """
int honest(const float* x, float* y, long n, void* s) {
  for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}
"""


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def run_on(runner) -> None:
    """Runs batches until the news of its end has come through."""
    while True:
        runner.batch(draws(1))


@pytest.fixture
def launcher():
    with Launcher.start() as started:
        yield started


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": "/nonexistent/candidate.so"}, "No such file"),
        ({"runner": "/nonexistent/hip-runner"}, "No such file"),
        ({"libraries": ("/nonexistent/lib.so",)}, "No such file"),
        ({"libraries": (__file__,)}, "did not start"),
        ({"runner": __file__}, "did not start"),
        ({"runner": None}, "needs a native runner"),
    ],
)
def test_runner_that_cannot_start_is_a_machine_fault(launcher, change, message):
    with pytest.raises(MachineFault, match=message):
        launcher.open(replace(native(HONEST, "honest"), **change), DOUBLING)

    ((inputs, batch),) = run_doubling(launcher, native(HONEST, "honest"))
    assert is_doubled(inputs, batch), "the launcher is still of use"


def test_launcher_that_died_is_a_machine_fault(launcher):
    os.kill(launcher._pid, signal.SIGKILL)
    with pytest.raises(MachineFault, match="launcher"):
        launcher.open(native(HONEST, "honest"), DOUBLING)


def test_runner_dies_with_its_launcher(launcher):
    """Nothing of a runner outlives the judge, however the judge ends."""
    runner = launcher.open(native(HONEST, "honest"), DOUBLING)
    runner.load(config(), 1)
    launcher.close()

    with pytest.raises(MachineFault, match="warden"):
        run_on(runner)


def test_many_runners_at_once_and_none_left(launcher):
    runners = [launcher.open(native(HONEST, "honest"), DOUBLING) for _ in range(4)]
    for runner in runners:
        runner.load(config(), 1)
    for runner in reversed(runners):
        inputs = draws(1)
        assert is_doubled(inputs, runner.batch(inputs))
    before = descriptors()
    for runner in runners:
        runner.close()
        runner.close()

    assert descriptors() < before


def test_descriptors_are_given_back(launcher):
    program = native(HONEST, "honest")
    run_doubling(launcher, program)
    before = descriptors()
    for _ in range(3):
        run_doubling(launcher, program)

    assert descriptors() == before


@pytest.mark.parametrize("abi", ["hip", "torch"])
def test_judge_in_a_sandbox_runs_its_candidate_in_a_second_one(tmp_path, abi):
    """This is how gates run: the candidate's sandbox is built inside the judge's."""
    torch_source = "def reference(x, **_):\n    return {'y': 2 * x}\n"
    program = (
        native(HONEST, "honest")
        if abi == "hip"
        else module(tmp_path, torch_source, "reference", "torch")
    )
    trees = {str(ROOT), sys.prefix, sys.base_prefix, str(Path(program.path).parent)}
    view = namespaces.View(
        binds=(
            *namespaces.system_binds(),
            *(namespaces.Bind(tree, tree) for tree in sorted(trees)),
        ),
        tmpfs=(),
    )

    def judge() -> int:
        with Launcher.start() as inner:
            ((inputs, batch),) = run_doubling(inner, program)
        return 0 if is_doubled(inputs, batch) else 9

    pid = namespaces.fork_contained(view, namespaces.Limits(), judge, seccomp="nestable")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
