"""What of a device is in the keys of the tasks that ship, and what their gates occupy."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.analysis import analyze
from kabuild.loading import Loader, expand, load_workspace
from kabuild.model.action import Action, Resources
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from tests.testkit.toolchains import any_toolchain

ROOT = Path(__file__).parents[3]
H200 = Platform(
    "cuda",
    (
        *(("arch", "sm_90"), ("device", "NVIDIA H200"), ("driver", "580.159.04")),
        *(("runtime", "13.0"), ("clocks", "sm 1980 MHz"), ("power", "700 W")),
    ),
)
PARTS = ("compile", "correctness", "perf", "unseen", "score")


def gates(task: str, platform: Platform) -> dict[str, Action]:
    loader = Loader(load_workspace(ROOT))
    options = Options(platform, loader.workspace.agent_label("expert"))
    label = expand(loader, [task])
    graph = analyze(loader, label, options, resolve=any_toolchain).graph
    return {part: graph.actions[f"{label[0]}.{part}"] for part in PARTS}


@pytest.mark.parametrize(
    "task", ["//tasks/hip2hip/softmax", "//tasks/triton2triton/rmsnorm", "//tasks/torch2hip/gelu"]
)
def test_only_what_measures_depends_on_more_than_the_architecture(task: str) -> None:
    declared = gates(task, H200)

    assert declared["perf"].platform == H200
    for part in set(PARTS) - {"perf"}:
        assert declared[part].platform == Platform("cuda", (("arch", "sm_90"),))


def test_whatever_runs_a_candidate_has_a_device_to_itself() -> None:
    occupied = {
        part: action.resources for part, action in gates("//tasks/hip2hip/softmax", H200).items()
    }

    assert occupied == {
        "compile": Resources(),
        "correctness": Resources(cpus=2, lease="cuda"),
        "perf": Resources(cpus=2, lease="cuda", timed=True),
        "unseen": Resources(cpus=2, lease="cuda"),
        "score": Resources(),
    }


def test_on_a_processor_only_what_measures_has_it_to_itself() -> None:
    cpu = Platform("cpu", (("arch", "x86_64"), ("device", "some CPU"), ("cores", "2")))
    declared = gates("//tasks/hip2hip/softmax", cpu)

    assert declared["perf"].resources == Resources(cpus=0, lease="cpu", timed=True)
    assert declared["perf"].platform == cpu
    for part in set(PARTS) - {"perf"}:
        assert declared[part].resources == Resources()
        assert declared[part].platform == Platform("cpu", (("arch", "x86_64"),))
