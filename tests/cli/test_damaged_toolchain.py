"""A fetched toolchain that somebody changed, with the real program: nothing runs with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testkit.archives import wheel
from tests.testkit.cli import CliWorkspace
from tests.testkit.fileserver import serving

RULE = """\
from kabuild.rule import Rule, attr


def implement(ctx):
    tool = ctx.toolchain(ctx.attrs["tool"])
    ctx.action(
        "",
        argv=("${toolchain:cc}/cc/bin/cc",),
        inputs={},
        outputs=("made",),
        mnemonic="Make",
        toolchains=(tool,),
    )


RULE = Rule(
    kind="made",
    doc="What a tool makes.",
    implement=implement,
    attrs={"tool": attr.label("The tool.", default="//toolchains/my:cc")},
)
"""
PINS = """\
[[toolchain]]
name = "cc"
role = "c++-compiler"
pypi = ["tool-cc==1.0"]
"""
FILES = {
    "cc/bin/cc": b'#!/bin/sh\ncp "${0%/*}/../include/cc.h" out/made\n',
    "cc/include/cc.h": b"#define CC\n",
}


@pytest.fixture
def fetched(tmp_path: Path) -> Iterator[CliWorkspace]:
    """A workspace whose one target is made by a fetched tool."""
    workspace = CliWorkspace.make(tmp_path)
    workspace.write("rules/made/rule.py", RULE)
    workspace.write("made/BUILD.toml", '[[made]]\nname = "made"\n')
    workspace.write("toolchains/my/BUILD.toml", PINS)
    with serving() as server:
        content = wheel(FILES, {"cc/bin/cc": 0o100755})
        server.serve_project("tool-cc", "tool_cc-1.0-py3-none-any.whl", content)
        workspace.env.update(
            PIP_INDEX_URL=f"{server.url}/simple",
            PIP_EXTRA_INDEX_URL="",
            PIP_CONFIG_FILE=os.devnull,
            no_proxy="127.0.0.1",
        )
        assert workspace.run("toolchain", "lock").code == 0
        assert workspace.run("toolchain", "fetch", "cc").code == 0
        yield workspace


def tree_of(workspace: CliWorkspace) -> Path:
    (tree,) = (workspace.store / "toolchains").glob("*/tree")
    for path in (tree, *tree.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.name == "cc" else 0o644)
    return tree / "cc"


def tamper(tree: Path) -> None:
    with (tree / "include/cc.h").open("a") as header:
        header.write("#error TAMPERED\n")


def remove(tree: Path) -> None:
    (tree / "include/cc.h").unlink()


def add(tree: Path) -> None:
    (tree / "include/new.h").touch()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (tamper, "cc/include/cc.h: changed"),
        (remove, "cc/include/cc.h: missing"),
        (add, "cc/include/new.h: added"),
    ],
)
def test_nothing_runs_with_it_until_it_is_mended(
    fetched: CliWorkspace, damage: Callable[[Path], None], named: str
) -> None:
    damage(tree_of(fetched))

    for command in (("build", "//made"), ("build", "--locked", "//made"), ("why", "//made")):
        ran = fetched.run(*command)
        assert ran.code == 45
        assert not ran.executed
        assert "//toolchains/my:cc differs from its download" in ran.err
        assert named in ran.err
    plain = fetched.run("toolchain", "fetch", "cc")
    assert plain.code == 45
    assert named in plain.err
    assert "kabuild toolchain fetch --force //toolchains/my:cc" in plain.err
    assert fetched.run("toolchain", "show", "cc", "--json").json["state"] == "drifted"

    assert fetched.run("toolchain", "fetch", "--force", "cc").code == 0
    ran = fetched.run("build", "//made")
    assert ran.code == 0, ran.err
    assert ran.executed == {"//made:made"}, "nothing was made with what was damaged"
    assert (fetched.root / "out/made/made/made").read_text() == "#define CC\n"


def test_what_was_made_before_is_not_shown_either(fetched: CliWorkspace) -> None:
    """Equal keys or not: with a changed tool nobody is told that all is as it was."""
    assert fetched.run("build", "//made").code == 0
    tamper(tree_of(fetched))

    assert fetched.run("build", "//made").code == 45
