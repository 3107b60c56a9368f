"""Starters' experts compiled for NVIDIA's processors, by the program; no GPU is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.tasks.chosen import judged_in_turn
from tests.tasks.declared import starters
from tests.testkit.cli import REPOSITORY, CliWorkspace
from tests.toolchains.hip_cuda.support import find_driver


def test_starters_in_turn_compile(tmp_path: Path) -> None:
    """With the compiler that is in the usual store."""
    find_driver()
    shown = subprocess.run(
        [sys.executable, "-m", "kabuild", "info", "store"],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    workspace = CliWorkspace.make(tmp_path, Path(shown.stdout.strip()))
    with judged_in_turn("compiled-cuda", starters()) as tasks:
        for task in tasks:
            workspace.adopt(task.label.removeprefix("//"))

        ran = workspace.run("build", "//tasks/...:*.compile", "--platform=cuda:sm_90")

        assert ran.code == 0, ran.err
        for task in tasks:
            made = workspace.root / "out" / task.label.removeprefix("//") / f"{task.name}.compile"
            said = json.loads((made / "verdict.json").read_text())
            assert (said["verdict"], said["reason"]) == ("PASS", ""), task.label
            assert "not all" not in said["summary"]
            assert {kernel["arch"] for kernel in said["kernels"]} == {"sm_90"}
            assert all(kernel["code_bytes"] > 0 for kernel in said["kernels"])
