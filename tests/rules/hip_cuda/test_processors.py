"""Which of NVIDIA's processors HIP is compiled for: said before anything runs."""

from __future__ import annotations

import pytest
from cuda_architectures import ARCHITECTURES

from kabuild.analysis import Resolve, analyze
from kabuild.base.errors import AnalysisError, Reason, ToolchainError
from kabuild.loading import Loader, expand, load_workspace
from kabuild.loading.platform_index import PlatformIndex
from kabuild.model.action import Toolchain
from kabuild.model.label import Label
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from kabuild.toolchain import Declaration
from tests.testkit.cli import REPOSITORY, CliWorkspace
from tests.testkit.toolchains import any_toolchain

SHIPPED = PlatformIndex.of(None)


def without_watchers(reason: Reason) -> Resolve:
    """All but those that watch a kernel are on this machine; one would have to be fetched."""

    def resolve(
        declaration: Declaration, *, name: str, fetch: bool = True, secrets: tuple[str, ...] = ()
    ) -> Toolchain:
        if declaration.label.name in {"sanitizer", "profiler"}:
            assert not fetch, "a compilation must not fetch what only a gate on request takes"
            raise ToolchainError(reason, "not in the store")
        return any_toolchain(declaration, name=name)

    return resolve


def subtargets(resolve: Resolve) -> set[str]:
    """What a HIP task has on ``cuda``."""
    loader = Loader(load_workspace(REPOSITORY))
    options = Options(Platform("cuda", (("arch", "sm_90"),)), Label("toolchains/agents", "none"))
    labels = expand(loader, ["//tasks/hip2hip/gemm", "//tasks/triton2triton/swiglu"])
    return set(analyze(loader, labels, options, resolve=resolve).graph.actions)


@pytest.mark.parametrize("reason", [Reason.NO_TOOLCHAIN, Reason.NOT_LOCKED, Reason.TOOLCHAIN_DRIFT])
def test_gates_on_request_are_there_where_their_toolchains_are(reason: Reason) -> None:
    """One that has changed, or with --locked is not in the lock, is as good as none."""
    task, triton = "//tasks/hip2hip/gemm:gemm", "//tasks/triton2triton/swiglu:swiglu"
    gates = {f"{task}.sanitize", f"{task}.sanitize.compile", f"{task}.counters"}
    gates |= {f"{triton}.counters"}
    without = subtargets(without_watchers(reason))

    assert gates <= subtargets(any_toolchain)
    assert not gates & without
    assert {f"{task}.compile", f"{triton}.compile"} <= without


def analyse(arch: str) -> None:
    """Analyse HIP for a device of that architecture."""
    loader = Loader(load_workspace(REPOSITORY))
    options = Options(Platform("cuda", (("arch", arch),)), loader.workspace.agent_label("none"))
    analyze(loader, expand(loader, ["//toolchains/hip:cuda"]), options, resolve=any_toolchain)


def test_the_driver_and_the_command_line_know_the_same() -> None:
    asked = SHIPPED.spec("cuda").architectures

    assert list(ARCHITECTURES) == list(asked)
    assert {name: ARCHITECTURES[name].name for name in asked} == asked
    assert asked["sm_90a"] == "sm_90"


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a", "sm_100f"])
def test_what_a_device_is_may_have_a_letter(arch: str) -> None:
    analyse(arch)


@pytest.mark.parametrize("arch", ["sm_42", "sm_110", "gfx942"])
def test_a_device_that_nothing_compiles_for_is_refused_with_what_does(arch: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        analyse(arch)

    assert caught.value.message == f"//toolchains/hip:cuda does not compile for '{arch}'"
    assert "sm_75, sm_80" in caught.value.hint
    assert str(caught.value.position).startswith("toolchains/hip/BUILD.toml:")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A task of HIP and one of Triton."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("processors"))
    for task in ("tasks/hip2hip/softmax", "tasks/triton2triton/rmsnorm"):
        workspace.adopt(task)
    return workspace


@pytest.mark.parametrize("asked", ["cuda:sm_42", "cuda:sm_9000", "rocm:gfx9999", "rocm:gfx1250"])
@pytest.mark.parametrize("command", ["build", "test", "why"])
def test_no_such_architecture_is_one_usage_error(
    tasks: CliWorkspace, asked: str, command: str
) -> None:
    ran = tasks.run(
        *(command, "//tasks/hip2hip/softmax:softmax.compile"),
        *("//tasks/triton2triton/rmsnorm:rmsnorm.compile", f"--platform={asked}"),
    )

    name, _, arch = asked.partition(":")
    assert ran.code == 2
    assert not ran.executed
    assert f"unknown {name} architecture '{arch}'" in ran.err
    assert f"known: {', '.join(SHIPPED.spec(name).architectures)}" in ran.err
