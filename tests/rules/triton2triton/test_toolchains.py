"""What a build of Triton tasks fetches: no compiler of HIP, on any platform."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kabuild.analysis import Analysis, analyze
from kabuild.loading import Loader, expand, load_workspace
from kabuild.model.action import Output, Toolchain
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from kabuild.toolchain import Declaration
from tests.testkit.cli import REPOSITORY

TRITON = "//tasks/triton2triton/rmsnorm:rmsnorm"
HIP = "//tasks/hip2hip/softmax:softmax"
CUDA = Platform("cuda", (("arch", "sm_90"),))
ROCM = Platform("rocm", (("arch", "gfx942"),))
FILTERS = {"cuda": "libcuda.so.1", "rocm": "libamdhip64.so"}


def analyse(task: str, platform: Platform, root: Path = REPOSITORY) -> tuple[Analysis, set[str]]:
    """A task's graph, and the toolchains that analysis wanted, which a build fetches."""
    wanted = set()

    def resolve(
        declaration: Declaration, *, name: str, fetch: bool = True, secrets: tuple[str, ...] = ()
    ) -> Toolchain:
        if fetch:
            wanted.add(declaration.label.short)
        return Toolchain(name, declaration.role, b"{}", f"/toolchains/{name}")

    loader = Loader(load_workspace(root))
    options = Options(platform, loader.workspace.agent_label("none"))
    return analyze(loader, expand(loader, [task]), options, resolve=resolve), wanted


@pytest.mark.parametrize(
    ("platform", "compilers"),
    [
        (CUDA, {"//toolchains/zig"}),
        (ROCM, {"//toolchains/zig"}),
        (Platform("cpu"), set()),
    ],
    ids=lambda value: value.name if isinstance(value, Platform) else "",
)
def test_triton_wants_no_compiler_but_the_one_of_the_launch_filter(
    platform: Platform, compilers: set[str]
) -> None:
    analysis, wanted = analyse(TRITON, platform)
    named = {
        chain.name
        for action in analysis.graph.actions.values()
        for chain in action.toolchains
        if action.gate != "counters"  # which has the profiler, where that is installed
    }

    assert wanted == {"//toolchains/python", *compilers}
    assert named == {label.rpartition("/")[2] for label in wanted}
    for name in FILTERS:
        target = f"//toolchains/hip:{name}_launch_filter"
        assert (target in analysis.graph.actions) == (platform.name == name)


@pytest.mark.parametrize("platform", [CUDA, ROCM], ids=lambda value: value.name)
def test_both_families_judge_on_a_device_with_the_same_launch_filter(platform: Platform) -> None:
    """That of HIP is built by what compiles HIP, which is the same compiler here."""
    built = []
    for task in (TRITON, HIP):
        analysis, wanted = analyse(task, platform)
        actions = analysis.graph.actions
        gates = [actions[f"{task}.{gate}"] for gate in ("correctness", "perf", "unseen")]
        (used,) = {dict(gate.inputs)["runner/launch-filter.so"] for gate in gates}
        assert isinstance(used, Output)
        assert used.path == FILTERS[platform.name]
        built.append(actions[used.producer])
        assert ("//toolchains/cuda:nvcc" in wanted) == (task == HIP and platform == CUDA)

    of_triton, of_hip = built
    assert of_triton.argv == of_hip.argv
    assert of_triton.inputs == of_hip.inputs
    assert of_triton.toolchains == of_hip.toolchains


def test_the_filter_is_built_by_the_host_compiler_that_is_declared() -> None:
    """Whoever declares another one for HIP's host part has no need of zig."""
    text = """
[[toolchain]]
name = "gcc"
role = "c++-compiler"
doc = "Any."
local = "/usr"

[[hip_cuda]]
name = "mine"
host = ":gcc"
program = "bin/g++"
"""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "WORKSPACE.toml").write_text('name = "own"\n')
        (root / "hip").mkdir()
        (root / "hip/BUILD.toml").write_text(text)
        analysis, _ = analyse("//hip:mine", CUDA, root)

    built = analysis.graph.actions["//hip:mine.launch_filter"]
    assert {"gcc", "python"} == {chain.name for chain in built.toolchains}
    assert any("/bin/g++" in argument for argument in built.argv)
