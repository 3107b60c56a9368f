"""Times of given kernels by a light clock, as far as they need no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import given_stage
import pytest
from workplace import Ran, Workplace

ROOT = Path(__file__).parents[2]
SWIGLU, SCAN = "//tasks/triton2triton/swiglu", "//tasks/hip2hip/scan"
PROGRAM = ROOT / "tests/device/given.py"


def test_a_kernel_is_timed_and_its_outputs_are_looked_at(tmp_path: Path) -> None:
    out = tmp_path / "out.json"

    subprocess.run(
        [sys.executable, PROGRAM, "cpu", out, SWIGLU, SCAN],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=tmp_path,
        check=True,
    )

    found = json.loads(out.read_bytes())
    row = found[SWIGLU]
    assert row["given_ns"] > 0
    assert row["bytes"] > 0
    assert row["excess"].keys() == {"y"}
    assert row["excess"]["y"] <= 1
    assert "kernel.so" in found[SCAN]["error"], "it has not been compiled there"


class Machine:
    """Kernels of which some end the process that times them, or take all the time there is."""

    def __init__(self, fatal: Sequence[str], late: Sequence[str] = ()) -> None:
        self.fatal, self.late = fatal, late
        self.devices: list[str] = []
        self.compiled: list[str] = []

    def test(self, *arguments: str) -> None:
        self.compiled += [one for one in arguments if one.startswith("//")]

    def script(
        self, name: str, tasks: Sequence[str], env: Mapping[str, str]
    ) -> tuple[dict[str, Any], Ran]:
        assert name == "given.py"
        self.devices.append(env["CUDA_VISIBLE_DEVICES"])
        found: dict[str, Any] = {}
        for task in sorted(tasks):
            found[task] = {"begun": True}
            if task in self.late:
                return found, Ran(124, "", "", 9.0)
            if task in self.fatal:
                return found, Ran(-6, "", "first\nillegal address", 1.0)
            found[task] = {"given_ns": 1.0}
        return found, Ran(0, "", "", 1.0)


def measured(machine: Machine, tasks: Sequence[str], devices: int) -> dict[str, Any]:
    return given_stage.measure(cast("Workplace", machine), tasks, devices)


ARGMAX, RMSNORM = "//tasks/triton2triton/argmax", "//tasks/triton2triton/rmsnorm"
SOFTMAX = "//tasks/hip2hip/softmax"


def test_a_process_that_a_kernel_ends_is_followed_by_another() -> None:
    found = measured(Machine(fatal=[SCAN, RMSNORM]), [SWIGLU, SOFTMAX, SCAN, RMSNORM, ARGMAX], 1)

    assert found["left"] == []
    rows = found["tasks"]
    assert [task for task, row in rows.items() if "error" in row] == [SCAN, RMSNORM]
    assert rows[SCAN] == {"error": "the process ended with -6: illegal address"}
    assert all(rows[task] == {"given_ns": 1.0} for task in (ARGMAX, SOFTMAX, SWIGLU))


def test_what_there_was_no_time_for_is_left() -> None:
    found = measured(Machine(fatal=[], late=[RMSNORM]), [ARGMAX, RMSNORM, SWIGLU], 1)

    assert [*found["tasks"]] == [ARGMAX]
    assert found["left"] == [RMSNORM, SWIGLU]


def test_tasks_can_be_named_as_for_kabuild() -> None:
    found = measured(Machine(fatal=[]), [f"{SCAN}:scan", "//tasks/triton2triton/...", SWIGLU], 2)

    assert len(found["tasks"]) == 111
    assert found["left"] == []


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_all_devices_are_used_and_kernels_of_hip_are_compiled_first(devices: int) -> None:
    machine = Machine(fatal=[])

    found = measured(machine, (), devices)

    assert found["left"] == []
    assert sorted(machine.devices) == [str(number) for number in range(devices)]
    assert len(found["tasks"]) == 160
    assert len(machine.compiled) == 50
