"""What the warm process of a gate has imported, where the oracle is a benchmark's own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.analysis import analyze
from kabuild.loading import Loader, expand, load_workspace
from kabuild.model.options import Options
from tests.testkit.own_tasks import PLATFORMS
from tests.testkit.toolchains import any_toolchain

TASK = """\
[[hip2hip]]
name      = "double"
kernel    = "double.hip"
reference = "reference.py"
brief     = "y = 2 x."
entry     = "twice"
inputs    = { x = "T[n]" }
outputs   = { y = "T[n]" }
dims      = { n = "1..65536" }
dtypes    = ["f32"]
configs   = [ { n = 1048 } ]
"""
JUDGING = ("correctness", "perf", "unseen", "admission")
COMPILER = "torch._dynamo"


@pytest.mark.parametrize(
    ("more", "platform", "compiler"),
    [
        ("", "cpu", False),
        ('library = "library"\n', "cpu", True),
        ('library = "library"\n', "cuda", False),
    ],
)
def test_the_compiler_is_there_for_originals_where_no_gpu_is(
    tmp_path: Path, more: str, platform: str, compiler: bool
) -> None:
    (tmp_path / "double/library").mkdir(parents=True)
    (tmp_path / "WORKSPACE.toml").write_text('name = "test"\n')
    (tmp_path / "double/BUILD.toml").write_text(TASK + more)
    for name in ("double.hip", "reference.py", "library/original.py"):
        (tmp_path / "double" / name).write_text("")
    loader = Loader(load_workspace(tmp_path))
    options = Options(PLATFORMS[platform], loader.workspace.agent_label("none"))

    found = analyze(loader, expand(loader, ["//double"]), options, resolve=any_toolchain)

    preloads = {a.gate: a.preload for a in found.graph if a.gate in JUDGING}
    assert {"correctness", "perf", "unseen"} <= preloads.keys()
    for preload in preloads.values():
        assert {"numpy", "torch"} < {*preload}
        assert (COMPILER in preload) == compiler
