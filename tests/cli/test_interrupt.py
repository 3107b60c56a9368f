"""Ctrl-C, SIGTERM and sudden death: nothing half-written, nothing left running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

import pytest

from tests.kabuild.sandbox.survivors import all_end
from tests.testkit.cli import CliWorkspace, Ran
from tests.testkit.processes import busy_seconds, descendants

from .conftest import KERNEL

FAST = "--gates=compile,correctness"
ENDLESS = KERNEL.replace("  return hip", "  for (volatile int i = 0;; i = i + 1) {}\n  return hip")


@pytest.fixture
def hanging(quick: CliWorkspace) -> CliWorkspace:
    """Task ``//double`` whose candidate never ends."""
    quick.write("double/solutions/expert/double.hip", ENDLESS)
    return quick


def start(workspace: CliWorkspace, *flags: str, command: str = "test") -> subprocess.Popen[str]:
    return subprocess.Popen(
        workspace.command(command, "//double", *flags),
        cwd=workspace.root,
        env=workspace.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def candidate_runs(process: subprocess.Popen[str]) -> list[int]:
    """Wait until the native runner is busy with the candidate; the processes by then."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        below = descendants(process.pid)
        if any(busy_seconds(pid, "hip-runner") > 0.2 for pid in below):
            return below
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"it ended with {process.wait(0.02)}: {process.communicate()}")
    pytest.fail("the candidate never ran")


def finish(process: subprocess.Popen[str]) -> Ran:
    out, err = process.communicate(timeout=60)
    return Ran(process.returncode, out, err)


def make_honest(workspace: CliWorkspace) -> None:
    workspace.write("double/solutions/expert/double.hip", KERNEL.replace("256", "32"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_build_in_order(hanging: CliWorkspace, number: int) -> None:
    process = start(hanging, FAST)
    below = candidate_runs(process)
    process.send_signal(number)
    ran = finish(process)

    assert ran.code == 8
    assert "interrupted" in ran.err
    assert "Traceback" not in ran.err
    assert "CANCELLED" in ran.out
    assert all_end(below)
    assert list((hanging.store / "tmp").iterdir()) == []

    make_honest(hanging)
    after = hanging.run("build", "//double:double.baseline.compile", "//double:double.compile")
    assert after.code == 0
    assert "//double:double.baseline.compile" not in after.executed, "finished work was lost"


def test_half_a_run_is_reported_as_nothing(hanging: CliWorkspace) -> None:
    process = start(hanging, FAST, "--format=md", command="report")
    below = candidate_runs(process)
    process.send_signal(signal.SIGINT)
    ran = finish(process)

    assert (ran.code, ran.out) == (8, "")
    assert "interrupted; finished results are kept" in ran.err
    assert all_end(below)


def test_ctrl_c_in_a_terminal_reaches_the_whole_group(hanging: CliWorkspace) -> None:
    """A terminal sends SIGINT to every process of the foreground group."""
    process = start(hanging, FAST, "--json")
    candidate_runs(process)
    os.killpg(process.pid, signal.SIGINT)
    ran = finish(process)

    assert ran.code == 8
    assert ran.json["exit_code"] == 8
    assert ran.gate("correctness")["verdict"] == "CANCELLED"
    assert ran.gate("compile")["verdict"] == "PASS"
    assert "Traceback" not in ran.err


def test_a_second_ctrl_c_ends_it_at_once(hanging: CliWorkspace) -> None:
    process = start(hanging, FAST)
    below = candidate_runs(process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)

    assert finish(process).code == 8
    assert all_end(below)


def test_after_sudden_death_nothing_runs_and_the_store_works(hanging: CliWorkspace) -> None:
    process = start(hanging, FAST)
    below = candidate_runs(process)
    process.kill()
    finish(process)
    assert all_end(below)

    make_honest(hanging)
    after = hanging.run("test", "//double", "--gates=compile")
    assert after.code == 0, after.err
    assert "//double:double.baseline.compile" not in after.executed, "finished work was lost"
    assert list((hanging.store / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "moment",
    [
        "os.kill(os.getpid(), signal.SIGINT)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "try: os.kill(os.getpid(), signal.SIGINT)\nfinally: os.close(-1)",
        # Nothing that is raised in these two arrives; a second signal needs nothing raised.
        "type('', (), {'__del__': lambda self: os.kill(os.getpid(), signal.SIGINT)})()",
        "for _ in '12':\n with contextlib.suppress(BaseException): os.kill(os.getpid(), 2)",
    ],
    ids=[
        "SIGINT",
        "SIGTERM",
        "with a fault of what cleans up",
        "in a finaliser",
        "swallowed, and again",
    ],
)
def test_a_signal_before_anything_runs(workspace: CliWorkspace, moment: str) -> None:
    """During loading there is no build to stop yet."""
    workspace.write(
        "rules/slow/rule.py",
        f"import contextlib, os, signal\nfrom kabuild.rule import Rule\n{moment}\n"
        'RULE = Rule(kind="slow", doc="Slow.", implement=lambda ctx: None)\n',
    )
    workspace.write("slow/BUILD.toml", '[[slow]]\nname = "slow"\n')

    ran = workspace.run("test", "//slow")

    assert (ran.code, ran.out, ran.err.strip()) == (8, "", "interrupted")


@pytest.mark.parametrize("before", ["", "trap '' INT; "], ids=["heeded", "ignored"])
def test_ctrl_c_while_it_starts(workspace: CliWorkspace, before: str) -> None:
    """Also where a script's ``&`` has made SIGINT ignored: a build heeds it there too."""
    early = workspace.write("early/click.py", "import os\nos.kill(os.getpid(), 2)\n").parent
    done = subprocess.run(
        ["sh", "-c", f'{before}exec "$@"', "sh", *workspace.command("version")],
        env={**workspace.environment(), "PYTHONPATH": str(early)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (8, "", "interrupted\n")
