"""HIP tasks compiled for AMD's processors by the program itself, in its sandbox."""

from __future__ import annotations

import importlib.metadata
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from architectures import ARCHITECTURES

from kabuild.loading.platform_index import PlatformIndex
from tests.bench.bench_rocm_compile import PROCESSORS, RESULTS, figures_of, worst_of
from tests.tasks.chosen import judged_in_turn
from tests.tasks.declared import starters
from tests.testkit.cli import REPOSITORY, CliWorkspace, copy_store
from tests.testkit.kept import kept_alone

PLATFORM = "--platform=rocm:gfx942"
ANEW = "results/rocm is of other kernels: python tests/bench/bench_rocm_compile.py --refresh"
BROKEN = """\
#include <hip/hip_runtime.h>

extern "C" hipError_t softmax_f32() {
  return wrong;
}
"""


def _locked() -> tuple[str, ...]:
    """Nothing but what the lock holds, where this Python has what the lock says of it."""
    lock = tomllib.loads((REPOSITORY / "toolchains/lock.toml").read_text())
    installed = (pin.split("==") for pin in lock["//toolchains/python:python"]["installed"])
    same = all(importlib.metadata.version(name) == version for name, version in installed)
    return ("--locked",) if same else ()


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """The starters; of two, the experts have been compiled for gfx942, and of one the baseline.

    What has been compiled is kept between test runs. The workspace's store is a copy of that.
    """
    directory = tmp_path_factory.mktemp("rocm")
    workspace = CliWorkspace.make(directory)
    for task in starters():
        workspace.adopt(task.label.removeprefix("//"))
    with kept_alone("rocm") as kept:
        keeping = CliWorkspace(workspace.root, kept / "store")
        parts = ("hip2hip/softmax:softmax", "torch2hip/gelu:gelu")
        labels = [f"//tasks/{part}.compile" for part in parts]
        baseline = "//tasks/hip2hip/softmax:*.baseline.compile"
        ran = keeping.run("build", *labels, baseline, PLATFORM, *_locked())
        assert ran.code == 0, ran.err
        copy_store(keeping.store, workspace.store)
    return workspace


def verdict(
    workspace: CliWorkspace, part: str, package: str = "tasks/hip2hip/softmax"
) -> dict[str, Any]:
    document = json.loads((workspace.root / "out" / package / part / "verdict.json").read_text())
    assert isinstance(document, dict)
    return document


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """What ``results/rocm`` has, by processor."""
    found = json.loads((RESULTS / "compile.json").read_text())["processors"]
    return {name: found[name] for name in PROCESSORS}


def test_starters_in_turn_compile_to_what_the_results_say(
    softmax: CliWorkspace, published: dict[str, Any]
) -> None:
    with judged_in_turn("compiled-rocm", starters()) as tasks, kept_alone("rocm") as kept:
        parts = [(task, f"{task.name}.compile") for task in tasks]
        parts += [
            (task, f"{task.name}.baseline.compile")
            for task in tasks
            if task.family == "triton2triton"
        ]
        keeping = CliWorkspace(softmax.root, kept / "store")
        labels = [f"{task.label}:{part}" for task, part in parts]
        ran = keeping.run("build", *labels, PLATFORM, *_locked())

        assert ran.code == 0, ran.err
        for task, part in parts:
            said = verdict(softmax, part, task.label.removeprefix("//"))
            assert (said["verdict"], said["reason"]) == ("PASS", ""), part
            assert "not all" not in said["summary"]
            assert {kernel["arch"] for kernel in said["kernels"]} == {"gfx942"}
            assert all(kernel["code_bytes"] > 0 for kernel in said["kernels"])
        for task in tasks:
            said = verdict(softmax, f"{task.name}.compile", task.label.removeprefix("//"))
            known = published["gfx942"]["tasks"][f"{task.family}/{task.name}"]
            assert known["kernels"] == figures_of(said), f"{task.label}: {ANEW}"


def test_the_page_of_results_says_what_their_data_says(published: dict[str, Any]) -> None:
    page = (RESULTS / "README.md").read_text()

    assert [row for row in worst_of(published) if row not in page] == [], ANEW
    assert {len(one["tasks"]) for one in published.values()} == {len(starters())}, ANEW


def test_the_verdict_says_what_each_kernel_takes(softmax: CliWorkspace) -> None:
    for part in ("softmax.compile", "softmax.baseline.compile"):
        said = verdict(softmax, part)

        assert (said["verdict"], said["reason"]) == ("PASS", "")
        assert said["summary"].startswith("gfx942: ")
        assert said["kernels"]
        for kernel in said["kernels"]:
            assert (kernel["arch"], kernel["wave"]) == ("gfx942", 64)
            assert 0 < kernel["registers"] <= 512
            assert 0 < kernel["occupancy"] <= kernel["occupancy_most"] == 8


def test_a_comment_compiles_again_and_stops_there(softmax: CliWorkspace, tmp_path: Path) -> None:
    copy = softmax.copy(tmp_path)
    kernel = copy.root / "tasks/torch2hip/gelu/solutions/expert/gelu.hip"
    library = Path("out/tasks/torch2hip/gelu/gelu.compile/kernel.so")
    before = (softmax.root / library).read_bytes()
    kernel.write_text("// Another comment.\n\n" + kernel.read_text())

    ran = copy.run("build", "//tasks/torch2hip/gelu:gelu.compile", PLATFORM)

    assert ran.executed == {"//tasks/torch2hip/gelu:gelu.compile"}
    assert (copy.root / library).read_bytes() == before


def test_a_kernel_that_is_wrong_fails_at_its_line(softmax: CliWorkspace, tmp_path: Path) -> None:
    copy = softmax.copy(tmp_path)
    solution = copy.write("softmax.hip", BROKEN)

    ran = copy.run(
        *("test", "//tasks/hip2hip/softmax", "--gates=compile", PLATFORM, "--json"),
        *("--solution", str(solution)),
    )

    assert ran.code == 3, ran.err
    gate = ran.gate("compile")
    assert (gate["verdict"], gate["reason"]) == ("FAIL", "COMPILE_ERROR")
    assert "softmax.hip:4:10: error: use of undeclared identifier 'wrong'" in gate["summary"]


def test_without_a_device_judging_is_a_matter_of_the_machine(softmax: CliWorkspace) -> None:
    ran = softmax.run("test", "//tasks/hip2hip/softmax", "--gates=correctness", PLATFORM, "--json")

    assert ran.code == 36, ran.out + ran.err
    gate = ran.gate("correctness")
    assert (gate["verdict"], gate["reason"]) == ("INFRA", "NO_DEVICE")
    assert "no rocm:gfx942 device on this machine" in gate["summary"]


def test_an_unknown_processor_is_refused_before_anything_runs(softmax: CliWorkspace) -> None:
    ran = softmax.run(
        *("build", "//tasks/hip2hip/softmax:softmax.compile", "--platform=rocm:gfx000")
    )

    assert ran.code == 2, ran.err
    assert not ran.executed
    assert "unknown rocm architecture 'gfx000'" in ran.err


def test_a_processor_that_does_not_compile_is_refused_with_those_that_do(
    softmax: CliWorkspace,
) -> None:
    ran = softmax.run(
        *("build", "//tasks/hip2hip/softmax:softmax.compile", "--platform=rocm:gfx803")
    )

    assert ran.code == 2
    assert not ran.executed
    assert "unknown rocm architecture 'gfx803'" in ran.err
    assert "gfx90a, gfx942, gfx950" in ran.err


def test_the_driver_and_the_command_line_know_the_same_processors() -> None:
    assert list(ARCHITECTURES) == list(PlatformIndex.of(None).spec("rocm").architectures)


def test_a_missing_rocm_says_how_to_adopt_one(softmax: CliWorkspace, tmp_path: Path) -> None:
    copy = softmax.copy(tmp_path)
    copy.write(
        "my/BUILD.toml",
        '[[toolchain]]\nname = "rocm"\nrole = "rocm"\nlocal = "/nowhere/rocm"\n\n'
        '[[hip_rocm]]\nname = "hip"\nrocm = ":rocm"\n',
    )
    manifest = copy.root / "WORKSPACE.toml"
    manifest.write_text(
        manifest.read_text() + '\n[toolchains]\n"//toolchains/hip:rocm" = "//my:hip"\n'
    )

    ran = copy.run("build", "//tasks/hip2hip/softmax:softmax.compile", PLATFORM)

    assert ran.code != 0
    assert "//my:rocm is not on this machine" in ran.err
    assert "kabuild toolchain pin //my:rocm --from DIRECTORY" in ran.err


def test_a_toolchain_of_another_role_is_refused(softmax: CliWorkspace, tmp_path: Path) -> None:
    copy = softmax.copy(tmp_path)
    copy.write("my/BUILD.toml", '[[hip_rocm]]\nname = "hip"\nlibrary = "//toolchains/zig"\n')

    ran = copy.run("build", "//my:hip", PLATFORM)

    assert ran.code != 0
    assert "cannot use //toolchains/zig as its 'library'" in ran.err
    assert "'rocm-device-library'" in ran.err
