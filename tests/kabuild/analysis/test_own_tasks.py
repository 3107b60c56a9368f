"""The tasks that ship with kabuild load and analyse."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.analysis import analyze
from kabuild.loading import Loader, builtin_root, expand, load_workspace
from kabuild.model.action import Source
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from tests.tasks.declared import all_tasks

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def loader() -> Loader:
    return Loader(load_workspace(ROOT))


def test_this_checkout_is_its_own_built_in_root() -> None:
    assert builtin_root() == ROOT


@pytest.mark.parametrize("agent", ["expert", "none"])
def test_every_task_has_a_score(loader: Loader, agent: str) -> None:
    tasks = expand(loader, ["//tasks/..."])
    options = Options(Platform("cpu", (("arch", "x"),)), loader.workspace.agent_label(agent))
    analysis = analyze(loader, tasks, options)
    assert tasks
    for task in tasks:
        gates = [gate.name for gate, _ in analysis.gates(task)]
        assert gates == ["compile", "correctness", "perf", "unseen", "score"]
        assert [label.name for label in analysis.builds(task)] == [f"{task.name}.score"]


@pytest.mark.parametrize(("agent", "sandboxed"), [("random", True), ("none", False)])
def test_sessions_alone_never_run_without_a_sandbox(
    loader: Loader, agent: str, sandboxed: bool
) -> None:
    options = Options(Platform("cpu", (("arch", "x"),)), loader.workspace.agent_label(agent))
    analysis = analyze(loader, expand(loader, ["//tasks/hip2hip/softmax"]), options)
    found = {action.label.name for action in analysis.graph if action.sandboxed}
    assert found == ({"softmax.agent"} if sandboxed else set())


@pytest.mark.parametrize("agent", ["expert", "none"])
def test_every_source_of_every_action_exists(loader: Loader, agent: str) -> None:
    """With an agent's own file where it has one; experts are written for some tasks only."""
    options = Options(Platform("cpu", (("arch", "x"),)), loader.workspace.agent_label(agent))
    known = [task.label for task in all_tasks() if agent == "none" or task.has_expert]
    analysis = analyze(loader, expand(loader, known), options)
    roots = {"workspace": ROOT, "builtin": ROOT, "kabuild": ROOT / "kabuild"}
    missing = {
        artifact
        for action in analysis.graph
        for _, artifact in action.inputs
        if isinstance(artifact, Source) and not (roots[artifact.root] / artifact.path).exists()
    }
    assert not missing


def test_another_workspace_uses_the_rules_and_toolchains_that_ship(tmp_path: Path) -> None:
    source = ROOT / "tasks/hip2hip/softmax"
    package = tmp_path / "mine/softmax"
    package.mkdir(parents=True)
    for name in ("BUILD.toml", "softmax.hip", "reference.py"):
        (package / name).write_bytes((source / name).read_bytes())
    (tmp_path / "WORKSPACE.toml").write_text('name = "mine"\n')
    loader = Loader(load_workspace(tmp_path))
    options = Options(Platform("cpu", (("arch", "x"),)), loader.workspace.agent_label("none"))
    analysis = analyze(loader, expand(loader, ["//..."]), options)
    inputs = dict(analysis.graph.actions["//mine/softmax:softmax.correctness"].inputs)
    assert inputs["task/reference.py"] == Source("mine/softmax/reference.py")
    assert inputs["tools/truth"] == Source("rules/harness/tools/truth", "builtin")
