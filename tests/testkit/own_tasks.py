"""The actions of tasks that ship, one of each family, without a toolchain that has to be there."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kabuild.analysis import Analysis, analyze
from kabuild.execution import Inputs, prepare
from kabuild.loading import Loader, expand, load_workspace
from kabuild.model.action import Action, Output
from kabuild.model.digest import Digest
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from kabuild.model.result import ActionResult, OutputFile
from tests.testkit.index import NoIndex
from tests.testkit.toolchains import any_toolchain

ROOT = Path(__file__).parents[2]
PLATFORMS = {
    "cpu": Platform("cpu", (("arch", "x86_64"),)),
    "cuda": Platform("cuda", (("arch", "sm_90"),)),
    "rocm": Platform("rocm", (("arch", "gfx942"),)),
}
TASKS = {
    "hip2hip": "//tasks/hip2hip/softmax",
    "torch2hip": "//tasks/torch2hip/gelu",
    "triton2triton": "//tasks/triton2triton/rmsnorm",
}


@cache
def scaffolded(family: str) -> Path:
    """A workspace with a new task of a family of which none ships."""
    root = Path(tempfile.mkdtemp(prefix="kabuild-own-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    (root / "WORKSPACE.toml").write_text('name = "own"\n')
    package = root / "tasks" / family / "mine"
    package.mkdir(parents=True)
    for file in (ROOT / "rules" / family / "template").iterdir():
        name = file.name.removesuffix(".in").replace("kernel", "mine")
        (package / name).write_text(file.read_text().replace("$name", "mine"))
    return root


@cache
def analysed(family: str, platform: str, agent: str = "none") -> Analysis:
    """One task of the family, with all of its gates."""
    root = ROOT if family in TASKS else scaffolded(family)
    return analysis_of(root, TASKS.get(family, f"//tasks/{family}/mine"), platform, agent)


def analysis_of(root: Path, label: str, platform: str, agent: str = "none") -> Analysis:
    """A task of the workspace at ``root``, with all of its gates."""
    loader = Loader(load_workspace(root))
    options = Options(PLATFORMS[platform], loader.workspace.agent_label(agent))
    return analyze(loader, expand(loader, [label]), options, resolve=any_toolchain)


def action_of(family: str, platform: str, part: str, agent: str = "none") -> Action:
    """The action of one sub-target of that task."""
    graph = analysed(family, platform, agent).graph
    return next(a for a in graph if a.label.name.endswith(f".{part}"))


def keys(analysis: Analysis, root: Path, shipped: Path | None = None) -> Mapping[str, str]:
    """By label, the key of each action: its sources are below ``root``, what ships in ``shipped``.

    What earlier actions made is stood in for by the name of what they made.
    """
    shipped = shipped or root
    roots = {"workspace": root, "builtin": shipped, "kabuild": shipped / "kabuild"}
    inputs = Inputs(roots, NoIndex())
    wanted: dict[str, set[str]] = {}
    for action in analysis.graph:
        for _, item in action.inputs:
            if isinstance(item, Output):
                wanted.setdefault(item.producer, set()).add(item.path)
    produced = {
        label: ActionResult(0, tuple(OutputFile(p, Digest.of(p.encode())) for p in sorted(paths)))
        for label, paths in wanted.items()
    }
    return {
        str(action.label): str(prepare(action, inputs.root(action, produced), hermetic=True).key)
        for action in analysis.graph
    }
