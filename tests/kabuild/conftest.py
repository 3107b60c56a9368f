"""Workspaces in temporary directories, for tests of the front tower."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from kabuild.loading import Loader, load_workspace

TASK_RULE = """
from kabuild.rule import VERDICT_FILE, AttributeProblem, Context, Gate, Role, Rule, attr


def check(attrs):
    for index, size in enumerate(attrs["sizes"]):
        if size["n"] < 1:
            raise AttributeProblem(f"size {size['n']} is too small", ("sizes", index, "n"), "use 1")


def implement(ctx: Context) -> None:
    compiled = ctx.gate(
        "compile",
        argv=("cc", "in"),
        inputs={"in": ctx.attrs["source"]},
        outputs=("bin",),
        mnemonic="Compile",
    )
    perf = ctx.gate(
        "perf",
        argv=("run", "bin"),
        inputs={"bin": compiled.output("bin")},
        mnemonic="Perf",
        requires=(compiled,),
    )
    ctx.gate(
        "score",
        argv=("score",),
        inputs={"v.json": perf.output(VERDICT_FILE)},
        mnemonic="Score",
    )


RULE = Rule(
    kind="task",
    doc="A toy task.",
    implement=implement,
    attrs={
        "source": attr.file("The source.", required=True),
        "oracle": attr.file("The oracle.", default="oracle.py"),
        "headers": attr.files("Headers.", default=("*.h",)),
        "solutions": attr.tree("Solutions.", default="solutions"),
        "deps": attr.labels("Other targets."),
        "compiler": attr.label("The compiler.", default="//toolchains/cc:{platform}"),
        "wave": attr.integer("A number.", default=64),
        "ratio": attr.number("A number.", default=1.0),
        "fast": attr.boolean("A flag."),
        "mode": attr.string("A word.", default="plain", values=("plain", "fancy")),
        "words": attr.strings("Words."),
        "dims": attr.table("A table."),
        "sizes": attr.tables("Tables."),
        "caps": attr.by_platform("A table by platform."),
        "places": attr.platforms("Platforms."),
    },
    subtargets=("compile", "perf", "score", "baseline.compile"),
    gates=(Gate("compile"), Gate("perf", role=Role.TIMES), Gate("score", role=Role.SCORE)),
    check=check,
)
"""

GROUP_RULE = '''
"""A target that only has dependencies."""
from kabuild.rule import Rule, attr

RULE = Rule(
    kind="group",
    doc="Targets together.",
    implement=lambda ctx: None,
    attrs={"deps": attr.labels("What it groups.")},
)
'''


class Project:
    """A workspace, with an empty root for what ships with kabuild beside it.

    It knows the rules ``task`` (with gates) and ``group`` (without actions), has an agent
    ``//toolchains/agents:expert`` and compilers ``//toolchains/cc:cpu`` and ``:rocm``.
    """

    def __init__(self, base: Path) -> None:
        self.root = base / "ws"
        self.builtin = base / "builtin"
        self.write("WORKSPACE.toml", 'name = "toy"\n')
        self.write("rules/task/rule.py", TASK_RULE)
        self.write("rules/group/rule.py", GROUP_RULE)
        self.write("toolchains/agents/BUILD.toml", '[[group]]\nname = "expert"\n')
        self.write("toolchains/cc/BUILD.toml", '[[group]]\nname = "cpu"\n[[group]]\nname = "rocm"')

    def write(self, path: str, text: str = "") -> Path:
        """A file of the workspace; a path that starts with ``builtin/`` ships with kabuild."""
        base = self.root.parent if path.startswith("builtin/") else self.root
        file = base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return file

    def task(self, package: str, more: str = "", *, name: str = "") -> None:
        """A package with one valid task."""
        name = name or package.rpartition("/")[2]
        self.write(f"{package}/{name}.src", "code")
        self.write(
            f"{package}/BUILD.toml", f'[[task]]\nname = "{name}"\nsource = "{name}.src"\n{more}'
        )

    def loader(self) -> Loader:
        """A new loader, which has read nothing yet."""
        self.builtin.mkdir(exist_ok=True)
        return Loader(load_workspace(self.root), self.builtin)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
