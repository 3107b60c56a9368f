"""``kabuild model optimise`` by the real program: decisions, files, interruption, what is refused.

The model has two parts. A scripted agent finds a faster kernel for ``slow``, and for ``plain`` one
that is wrong, after it was interrupted twice.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kabuild.neural.packages import Graph, Known, Place
from kabuild.store.paths import journals_of
from tests.testkit.cli import CliWorkspace, Ran

from .conftest import QUICK

TASK = """\
[[call]]
name = "{name}"
kernel = "{name}.py"
reference = "reference.py"
brief = "y = 2 x."
call = "y = {name}(x)"
inputs = {{ x = "T[n]" }}
outputs = {{ y = "T[n]" }}
dims = {{ n = "1..64" }}
dtypes = ["f32"]
configs = [{{ n = 32 }}]
flops = "n"
"""
REFERENCE = """\
import torch


def inputs(config, generator):
    return {"x": torch.randn(config["n"], generator=generator, dtype=config["dtype"])}


def reference(x, **_):
    return {"y": 2 * x}
"""
PLAIN = "def plain(x):\n    return 2 * x\n"
SLOW = """\
import time


def slow(x):
    time.sleep(0.15)
    return 2 * x
"""
FAST = SLOW.replace("0.15", "0.01")
"""So much faster, and itself so long, that no busy machine hides it."""
AGENTS = """\
[[agent]]
name    = "scripted"
command = ["{python}", "{files}/scripted.py", "{kernel}", "{journal}"]
files   = ["scripted.py"]
resumes = true
seconds = 120

[[agent]]
name    = "long"
command = ["{python}", "{files}/scripted.py"]
files   = ["scripted.py"]
"""
SCRIPTED = """\
import pathlib, sys, time

kernel, journal = map(pathlib.Path, sys.argv[1:])
if kernel.stem == "slow":
    kernel.write_text(kernel.read_text().replace("0.15", "0.01"))
else:
    journal.write_text(journal.read_text() + "+")
    if len(journal.read_text()) < 3:
        time.sleep(600)
    kernel.write_text("def plain(x):\\n    return 3 * x\\n")
"""
OPTIMISE = ("model", "optimise", "tasks/net", "--agent=//agents:scripted")
LEDGER = "out/model/net/optimise/agents/scripted.txt"
FLAGS = (*OPTIMISE, "--budget=1h", "--stalled=1")


def write(workspace: CliWorkspace, *, is_task: bool = True) -> None:
    """The package of a model, as ``extract`` writes it, with its agents."""
    kernels = {"slow": SLOW, "plain": PLAIN}
    for name, kernel in kernels.items():
        workspace.write(f"tasks/net/{name}/BUILD.toml", TASK.format(name=name) + QUICK)
        workspace.write(f"tasks/net/{name}/{name}.py", kernel)
        workspace.write(f"tasks/net/{name}/reference.py", REFERENCE)
    parts = {
        name: Place(share, 0.001, (1,), is_task) for name, share in (("plain", 0.1), ("slow", 0.9))
    }
    known = Known("net", "cpu", parts, Graph("", (), (), {}))
    workspace.write("tasks/net/model.json", known.text())
    workspace.write("agents/BUILD.toml", AGENTS)
    workspace.write("agents/scripted.py", SCRIPTED)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("optimise"))
    write(workspace)
    return workspace


def interrupted(place: CliWorkspace, times: int, number: int) -> Ran:
    """A run that gets a signal when its agent has begun at ``plain`` so often."""
    process = subprocess.Popen(
        place.command(*FLAGS),
        cwd=place.root,
        env=place.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(path.read_text() == "+" * times for path in journals_of(place.store).glob("*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=100)
    return Ran(process.returncode, out, err)


def log(place: CliWorkspace) -> list[dict[str, Any]]:
    lines = (place.root / LEDGER).with_suffix(".jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def stopped(place: CliWorkspace) -> Ran:
    """The first run, which Ctrl-C ends while the second part's session runs."""
    return interrupted(place, 1, signal.SIGINT)


def test_an_interrupted_run_keeps_what_it_found(place: CliWorkspace, stopped: Ran) -> None:
    assert stopped.code == 8, stopped.err
    assert "interrupted; the same command continues; sessions: 1" in stopped.out
    assert "Traceback" not in stopped.err
    assert [line["event"] for line in log(place)] == ["begin", "session", "left", "end"]
    assert log(place)[-1]["why"] == "interrupted"
    kernel = place.root / "tasks/net/slow/solutions/optimised/slow.py"
    assert kernel.read_text() == FAST
    table = (place.root / LEDGER).read_text()
    for text in (stopped.out, table):
        assert "interrupted" in next(line for line in text.splitlines() if "plain" in line)
        assert "the budget ended" not in text


@pytest.fixture(scope="module")
def optimised(place: CliWorkspace, stopped: Ran) -> Ran:
    """The third run; the second was killed where the first was interrupted."""
    assert interrupted(place, 2, signal.SIGKILL).code == -signal.SIGKILL
    return place.run(*FLAGS, "--json")


def test_a_run_goes_on_where_another_was_killed(place: CliWorkspace, optimised: Ran) -> None:
    assert optimised.code == 0, optimised.err
    found = optimised.json
    assert found["end"] == "parts_done"
    told = [(s["part"], s["trial"], s["cached"], s["problem"]) for s in found["sessions"]]
    assert told == [("slow", 1, True, ""), ("plain", 1, False, "WRONG_RESULT")]
    assert {part["part"]: part["left"] for part in found["parts"]} == {
        "slow": "fast_enough",
        "plain": "stalled",
    }
    slow = found["parts"][0]
    assert slow["speedup"] > 2
    assert found["predicted"] == pytest.approx(1 / (0.1 + 0.9 / slow["speedup"]))
    assert not (place.root / "tasks/net/plain/solutions").exists()


def test_what_was_decided_is_written_with_why(place: CliWorkspace, optimised: Ran) -> None:
    events = [(line["event"], line.get("part"), line.get("why")) for line in log(place)]
    assert events == [
        ("begin", None, None),
        ("session", "slow", None),
        ("left", "slow", "fast_enough"),
        ("session", "plain", None),
        ("left", "plain", "stalled"),
        ("end", None, "parts_done"),
    ]
    table = (place.root / LEDGER).read_text()
    assert "sessions in a row without progress: 1 (--stalled=1)" in table
    assert "x as fast (--enough=2)" in table


def test_a_run_that_is_done_is_told_from_the_cache(place: CliWorkspace, optimised: Ran) -> None:
    again = place.run(*FLAGS)

    assert again.code == 0
    assert not again.executed
    lines = again.out.splitlines()
    assert lines[0].startswith("[")
    assert "slow  #1" in lines[0]
    assert any(line.startswith("every part is done; sessions: 2, ") for line in lines)
    assert lines[-1].startswith("verify the model with: kabuild model verify tasks/net")
    assert "--agent=optimised" in lines[-1]


def test_a_spent_budget_ends_it(place: CliWorkspace, optimised: Ran) -> None:
    """The first session is known to have taken some time, so that no other fits."""
    ran = place.run(*OPTIMISE, "--budget=2m", "--enough=1000", "--json")

    assert ran.json["end"] == "budget"
    assert ran.code == 0
    assert [session["part"] for session in ran.json["sessions"]] == ["slow"]
    assert {part["left"] for part in ran.json["parts"]} == {None, "part_budget"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--agent=expert", "--budget=4h"), "agent 'expert' has no sessions"),
        (("--agent=//agents:scripted", "--budget=2x"), "'2x' is not a time such as 30m or 4h"),
        (("--agent=//agents:scripted", "--budget=0s"), "'0s' is not a time such as 30m or 4h"),
        (
            ("--agent=//agents:scripted", "--budget=90s"),
            "--budget=1m30s is less than a session of //agents:scripted may take, 2m",
        ),
        (
            ("--agent=//agents:scripted", "--budget=1h", "--part_budget=1m"),
            "--part_budget=1m is less than a session",
        ),
        (("--agent=//agents:long", "--budget=59m"), "may take, 1h"),
        (("--agent=nobody", "--budget=4h"), "nobody"),
        (("--budget=4h",), "--agent"),
        (("--agent=//agents:scripted",), "--budget"),
        (("--agent=//agents:scripted", "--budget=1h", "--near_roof=0"), "--near_roof"),
        (("--agent=//agents:scripted", "--budget=1h", "--enough=0.5"), "--enough"),
    ],
)
def test_wrong_flags_are_one_usage_error(
    place: CliWorkspace, arguments: tuple[str, ...], said: str
) -> None:
    ran = place.run("model", "optimise", "tasks/net", *arguments)

    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_model_without_tasks_is_a_usage_error(tmp_path: Path) -> None:
    workspace = CliWorkspace.make(tmp_path)
    write(workspace, is_task=False)

    ran = workspace.run(*FLAGS)

    assert ran.code == 2
    assert "no part of tasks/net is a task" in ran.err


def test_a_log_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    workspace = CliWorkspace.make(tmp_path)
    write(workspace)
    workspace.write("out/model", "a file")

    ran = workspace.run(*FLAGS)

    assert ran.code == 36
    assert "out/model" in ran.err
    assert "Traceback" not in ran.err
    assert not journals_of(workspace.store).exists(), "no session began"
