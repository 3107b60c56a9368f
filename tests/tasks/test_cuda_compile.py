"""The starters' experts compiled for NVIDIA's processors, by the program; no GPU is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.declared import starters
from tests.testkit.cli import REPOSITORY, CliWorkspace, Ran
from tests.toolchains.hip_cuda.support import find_driver

TASKS = [task.package for task in starters()]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the compile gate says of each task, with the compiler that is in the usual store."""
    find_driver()
    shown = subprocess.run(
        [sys.executable, "-m", "kabuild", "info", "store"],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("cuda"), Path(shown.stdout.strip()))
    for task in starters():
        workspace.adopt(task.label.removeprefix("//"))
    ran: Ran = workspace.run("build", "//tasks/...:*.compile", "--platform=cuda:sm_90")
    assert ran.code == 0, ran.err
    found = workspace.root.glob("out/tasks/*/*/*.compile/verdict.json")
    return {path.parents[1].name: json.loads(path.read_text()) for path in found}


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_every_task_compiles(verdicts: dict[str, Any], task: Path) -> None:
    said = verdicts[task.name]

    assert (said["verdict"], said["reason"]) == ("PASS", "")
    assert "not all" not in said["summary"]
    assert {kernel["arch"] for kernel in said["kernels"]} == {"sm_90"}
    assert all(kernel["code_bytes"] > 0 for kernel in said["kernels"])
