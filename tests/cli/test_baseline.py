"""What a PyTorch baseline is timed as, by the real program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import KERNEL, QUICK, REFERENCE, TASK
from tests.testkit.cli import CliWorkspace

LABEL = "//double:double.baseline"
WRONG = """

def baseline(x, **_):
    return {"y": 2 * x + (x > 0) * 0.5}
"""


@pytest.fixture(name="torch_task")
def _torch_task(tmp_path: Path) -> CliWorkspace:
    workspace = CliWorkspace.make(tmp_path)
    workspace.write("double/BUILD.toml", TASK.replace("hip2hip", "torch2hip") + QUICK)
    workspace.write("double/double.hip", KERNEL)
    workspace.write("double/reference.py", REFERENCE)
    workspace.write("double/solutions/expert/double.hip", KERNEL.replace("256", "128"))
    return workspace


def test_all_candidates_share_one_choice_until_the_task_changes(torch_task: CliWorkspace) -> None:
    first = torch_task.run("build", LABEL)
    others = [torch_task.run("build", LABEL, "--agent=expert")]
    torch_task.write("double/double.hip", KERNEL.replace("256", "64"))
    others.append(torch_task.run("build", LABEL))
    assert first.executed == {LABEL}, first.err
    assert [(ran.code, ran.executed) for ran in others] == [(0, set()), (0, set())]

    told = json.loads((torch_task.root / "out/double/double.baseline/baseline.json").read_bytes())
    assert told["baselines"]["f32 n=1048"]["counted"] == "eager"
    assert LABEL in torch_task.run("query", "//double:*.baseline").out
    assert "cached" in torch_task.run("why", LABEL).out

    torch_task.write("double/reference.py", REFERENCE + "\n\nEDITED = True\n")
    assert torch_task.run("build", LABEL).executed == {LABEL}


def test_a_wrong_baseline_is_no_result_and_no_speedup(torch_task: CliWorkspace) -> None:
    torch_task.write("double/reference.py", REFERENCE + WRONG)

    ran = torch_task.run("build", LABEL)

    assert ran.code == 36
    assert "the baseline gives wrong results here: output 'y' differs" in ran.out


def test_a_baseline_that_fails_is_the_task_s_mistake(torch_task: CliWorkspace) -> None:
    torch_task.write("double/reference.py", REFERENCE + WRONG.replace("2 * x +", "x.nothing +"))

    ran = torch_task.run("build", LABEL)

    assert ran.code == 1
    assert "has no attribute 'nothing'" in ran.out


def test_what_was_timed_against_such_a_baseline_is_published_and_verified(
    torch_task: CliWorkspace,
) -> None:
    bundle = str(torch_task.root / "torch.kab")
    published = torch_task.run("publish", "//double", "--agent=expert", "-o", bundle)
    assert published.code == 0, published.out + published.err

    verified = torch_task.run("verify", bundle)

    assert verified.code == 0, verified.out + verified.err
    assert "\n  perf         1 PASS" in verified.out
