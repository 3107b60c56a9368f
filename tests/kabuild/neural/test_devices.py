"""What runs a model on a device: where it runs, and what it finds there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kabuild.analysis import analyze
from kabuild.base.errors import Position
from kabuild.loading import Loader, Package, load_workspace
from kabuild.model.action import Action, Literal, Resources
from kabuild.model.label import Label
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from kabuild.model.target import Target
from tests.testkit.toolchains import any_toolchain

ROOT = Path(__file__).parents[3]
CPU = Platform("cpu", (("arch", "x86_64"), ("device", "some CPU")))
H200 = Platform("cuda", (("arch", "sm_90"), ("device", "NVIDIA H200")))
TIMED = Resources(cpus=2, lease="cuda", timed=True)
MODEL = {"model": Literal(b"")}
ATTRS: dict[str, Any] = {
    "model_profile": MODEL,
    "model_compiled": MODEL,
    "model_tasks": {**MODEL, "parts": ("linear",), "title": "net"},
}
KINDS = {"model_profile": TIMED, "model_compiled": TIMED, "model_tasks": Resources(2, "cuda")}


def declared(kind: str, platform: Platform) -> Action:
    loader = Loader(load_workspace(ROOT))
    label = Label("model/net", kind)
    target = Target(label, kind, ATTRS[kind], Position("net.py"), ())
    loader.add(Package(label.package, "workspace", {label.name: target}, "net.py"))
    options = Options(platform, loader.workspace.agent_label("none"))
    graph = analyze(loader, [label], options, resolve=any_toolchain).graph
    return graph.actions[str(label)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_runs_on_the_device_that_it_is_meant_for(kind: str) -> None:
    action = declared(kind, H200)

    assert action.argv[-1] == "--device=cuda_device"
    files = [path for path, _ in action.inputs]
    assert {"tools/cuda_device.py", "tools/base", "tools/terms"} <= {*files}
    assert action.resources == KINDS[kind]
    assert not any("hip/" in path or "inductor" in path for path in files)


@pytest.mark.parametrize("kind", KINDS)
def test_no_process_asks_for_devices_before_it_divides(kind: str) -> None:
    """PyTorch's compiler does when it is imported, and a child could use none afterwards."""
    assert "torch._dynamo" not in declared(kind, H200).preload
    assert "torch._dynamo" in declared(kind, CPU).preload


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_processor_no_device_is_named(kind: str) -> None:
    action = declared(kind, CPU)

    assert not any(word.startswith("--device") for word in action.argv)
    assert not any("device" in path for path, _ in action.inputs)
