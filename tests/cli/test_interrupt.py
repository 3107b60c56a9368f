"""Ctrl-C, SIGTERM and sudden death: nothing half-written, nothing left running.

Of a candidate that its judge runs; and of a gate that is a program, which is as good for the rest.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kabuild.sandbox.survivors import all_end
from tests.testkit.cli import CliWorkspace, Ran
from tests.testkit.generated import generate
from tests.testkit.processes import busy_seconds, descendants

from .conftest import KERNEL

FAST = "--gates=compile,correctness"
ENDLESS = KERNEL.replace("  return hip", "  for (volatile int i = 0;; i = i + 1) {}\n  return hip")


@dataclass(frozen=True)
class Hanging:
    """A task whose correctness gate never ends; all before it does.

    Attributes:
        task: its label.
        busy: the program that runs for ever.
        cure: a file, and the text with which the task ends as it should.
    """

    workspace: CliWorkspace
    task: str
    busy: str
    cure: tuple[str, str]

    def start(self, *flags: str, command: str = "test") -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.workspace.command(command, self.task, *flags),
            cwd=self.workspace.root,
            env=self.workspace.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait(self, process: subprocess.Popen[str]) -> list[int]:
        """Wait until the program that never ends is busy; the processes by then."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            below = descendants(process.pid)
            if any(busy_seconds(pid, self.busy) > 0.2 for pid in below):
                return below
            with contextlib.suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended with {process.wait(0.1)}: {process.communicate()}")
        pytest.fail("the candidate never ran")

    def goes_on(self) -> None:
        """What was finished is not made again, what is new is, and nothing half-written is left."""
        compiled = f"{self.task}:{self.task.rpartition('/')[2]}.compile"
        assert self.workspace.run("build", compiled).executed == set(), "finished work was lost"
        self.workspace.write(*self.cure)
        after = self.workspace.run("test", self.task, "--gates=compile")
        assert (after.code, after.executed) == (0, {compiled}), after.err
        assert self.left() == []

    def left(self) -> list[Path]:
        """What is half-written."""
        return list((self.workspace.store / "tmp").iterdir())


@pytest.fixture
def hanging(tmp_path: Path) -> Hanging:
    """Of the generated rule, whose gates are instant."""
    generate(tmp_path / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    rule = workspace.root / "rules/copied/rule.py"
    endless = "[ -e before ] && grep -q endless before && yes >/dev/null; v=pass;"
    rule.write_text(rule.read_text().replace("v=pass;", endless))
    kernel = "tasks/family0/t0/kernel.hip"
    workspace.write(kernel, "endless\n")
    return Hanging(workspace, "//tasks/family0/t0", "yes", (kernel, "finite\n"))


@pytest.fixture
def candidate(quick: CliWorkspace) -> Hanging:
    """Of a real one: the candidate never ends, below its native runner and the judge."""
    solution = "double/solutions/expert/double.hip"
    quick.write(solution, ENDLESS)
    return Hanging(quick, "//double", "hip-runner", (solution, KERNEL.replace("256", "32")))


def finish(process: subprocess.Popen[str]) -> Ran:
    out, err = process.communicate(timeout=60)
    return Ran(process.returncode, out, err)


@pytest.mark.parametrize(
    ("what", "number"),
    [("candidate", signal.SIGINT), ("hanging", signal.SIGTERM), ("hanging", signal.SIGHUP)],
)
def test_a_signal_stops_the_build_in_order(
    request: pytest.FixtureRequest, what: str, number: int
) -> None:
    build: Hanging = request.getfixturevalue(what)
    process = build.start(FAST)
    below = build.wait(process)
    process.send_signal(number)
    ran = finish(process)

    assert ran.code == 8
    assert "interrupted" in ran.err
    assert "Traceback" not in ran.err
    assert "CANCELLED" in ran.out
    assert all_end(below)
    assert build.left() == []
    build.goes_on()


def test_half_a_run_is_reported_as_nothing(hanging: Hanging) -> None:
    process = hanging.start(FAST, "--format=md", command="report")
    below = hanging.wait(process)
    process.send_signal(signal.SIGINT)
    ran = finish(process)

    assert (ran.code, ran.out) == (8, "")
    assert "interrupted; finished results are kept" in ran.err
    assert all_end(below)


def test_ctrl_c_in_a_terminal_reaches_the_whole_group(hanging: Hanging) -> None:
    """A terminal sends SIGINT to every process of the foreground group."""
    process = hanging.start(FAST, "--json")
    hanging.wait(process)
    os.killpg(process.pid, signal.SIGINT)
    ran = finish(process)

    assert ran.code == 8
    assert ran.json["exit_code"] == 8
    assert ran.gate("correctness")["verdict"] == "CANCELLED"
    assert ran.gate("compile")["verdict"] == "PASS"
    assert "Traceback" not in ran.err


def test_a_second_ctrl_c_ends_it_at_once(hanging: Hanging) -> None:
    process = hanging.start(FAST)
    below = hanging.wait(process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)

    assert finish(process).code == 8
    assert all_end(below)


@pytest.mark.parametrize("what", ["candidate", "hanging"])
def test_after_sudden_death_nothing_runs_and_the_store_works(
    request: pytest.FixtureRequest, what: str
) -> None:
    build: Hanging = request.getfixturevalue(what)
    process = build.start(FAST)
    below = build.wait(process)
    process.kill()
    finish(process)

    assert all_end(below)
    build.goes_on()


@pytest.mark.parametrize(
    "moment",
    [
        "os.kill(os.getpid(), signal.SIGINT)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGHUP)",
        "os.kill(os.getpid(), signal.SIGQUIT)",
        "try: os.kill(os.getpid(), signal.SIGINT)\nfinally: os.close(-1)",
        # Nothing that is raised in these two arrives; a second signal needs nothing raised.
        "type('', (), {'__del__': lambda self: os.kill(os.getpid(), signal.SIGINT)})()",
        "for _ in '12':\n with contextlib.suppress(BaseException): os.kill(os.getpid(), 2)",
    ],
    ids=[
        "SIGINT",
        "SIGTERM",
        "SIGHUP",
        "SIGQUIT",
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


def test_a_closed_terminal_stops_nothing_under_nohup(workspace: CliWorkspace) -> None:
    early = workspace.write("early/click.py", "import os\nos.kill(os.getpid(), 1)\n").parent
    done = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *workspace.command("version")],
        env={**workspace.environment(), "PYTHONPATH": str(early)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 8, "it went on, and did not find click"
    assert "interrupted" not in done.stderr


TWICE_AT_ONCE = """
import os, signal
from kabuild.cli.session import interruptible
with interruptible() as stop:
    first = stop.set
    stop.set = lambda: (first(), os.kill(os.getpid(), signal.SIGTERM))
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_two_signals_at_once_are_not_silent() -> None:
    argv = [sys.executable, "-c", TWICE_AT_ONCE]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (8, "interrupted\n")
