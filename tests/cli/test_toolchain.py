"""``kabuild toolchain``, with the real program and trees of this machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace

DECLARATION = """\
[[toolchain]]
name  = "tools"
role  = "shovel"
local = "{home}"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An installed tree."""
    home = tmp_path / "installed"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "tool").write_text("#!/bin/sh\n")
    (home / "bin" / "tool").chmod(0o755)
    (home / "share").write_text("data")
    return home


@pytest.fixture
def declared(workspace: CliWorkspace, tree: Path) -> CliWorkspace:
    """A workspace that declares the tree."""
    workspace.write("toolchains/my/BUILD.toml", DECLARATION.format(home=tree))
    return workspace


def state(workspace: CliWorkspace, name: str = "tools") -> str:
    ran = workspace.run("toolchain", "list", "--json")
    assert ran.code == 0, ran.err
    (item,) = [item for item in ran.json if item["name"].endswith(name)]
    return str(item["state"])


def test_list_has_the_workspaces_own_and_those_that_ship(declared: CliWorkspace) -> None:
    ran = declared.run("toolchain", "list")

    assert ran.code == 0, ran.err
    assert "//toolchains/my:tools" in ran.out
    assert "//toolchains/zig" in ran.out


def test_show_says_digest_home_and_users(declared: CliWorkspace, tree: Path) -> None:
    ran = declared.run("toolchain", "show", "tools", "--json")

    assert ran.json["home"] == str(tree)
    assert json.loads(ran.json["fingerprint"])["files"] == 2
    assert len(ran.json["digest"]) == 64


def test_a_name_that_nothing_has_gets_a_suggestion(declared: CliWorkspace) -> None:
    ran = declared.run("toolchain", "show", "tols")

    assert ran.code == 2
    assert "did you mean 'tools'" in ran.err


def test_a_change_of_an_adopted_tree_names_the_files(declared: CliWorkspace, tree: Path) -> None:
    assert declared.run("toolchain", "pin", "tools").code == 0
    assert declared.run("toolchain", "verify", "tools").code == 0
    (tree / "bin" / "tool").write_text("#!/bin/sh\nrm -rf /\n")
    (tree / "share").unlink()
    (tree / "new").touch()

    ran = declared.run("toolchain", "verify", "tools")

    assert ran.code == 45
    lines = [line.strip() for line in ran.out.splitlines()]
    assert {"bin/tool: changed", "share: missing", "new: added"} <= {*lines}
    assert any("kabuild toolchain pin" in line for line in lines)
    assert state(declared) == "drifted"


def test_to_verify_what_is_missing_fails_where_it_is_named(
    declared: CliWorkspace, tree: Path
) -> None:
    shutil.rmtree(tree)

    named = declared.run("toolchain", "verify", "tools")
    every = declared.run("toolchain", "verify")

    assert (named.code, every.code) == (36, 0)
    for ran in (named, every):
        assert f"//toolchains/my:tools is not on this machine: {tree} does not exist" in ran.out


def test_a_changed_mode_is_drift(declared: CliWorkspace, tree: Path) -> None:
    declared.run("toolchain", "pin", "tools")
    (tree / "bin" / "tool").chmod(0o644)

    assert "bin/tool: changed" in declared.run("toolchain", "verify", "tools").out


def test_pin_again_accepts_the_change(declared: CliWorkspace, tree: Path) -> None:
    declared.run("toolchain", "pin", "tools")
    (tree / "share").write_text("other")
    assert state(declared) == "drifted"

    assert declared.run("toolchain", "pin", "tools", "--from", str(tree)).code == 0
    assert state(declared) == "ready"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pin", "python"), "of the running Python"),
        (("pin", "nvcc"), "say what to adopt"),
        (("pin", "tools", "--from", "/nonexistent"), "does not exist"),
        (("pin", "tools", "--from", "{tree}", "--path", "../etc"), "there is no '../etc'"),
    ],
)
def test_what_cannot_be_pinned(
    declared: CliWorkspace, tree: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = declared.run("toolchain", *(item.format(tree=tree) for item in arguments))

    assert ran.code == 2
    assert message in ran.err
    assert not (declared.root / "toolchains" / "lock.toml").exists()


def test_locked_refuses_what_the_lock_does_not_hold(quick: CliWorkspace) -> None:
    """The lock that ships with kabuild is of another declaration."""
    quick.write("toolchains/python/BUILD.toml", PYTHON)

    ran = quick.run("test", "//double", "--gates=compile", "--locked")
    assert ran.code == 45
    assert "changed since it was locked, and --locked forbids that" in ran.err

    assert quick.run("toolchain", "lock").code == 0
    ran = quick.run("test", "//double", "--gates=compile", "--locked")
    assert ran.code == 0, ran.err


PYTHON = """\
[[toolchain]]
name        = "python"
role        = "python"
environment = ["click", "numpy", "torch", "triton"]
doc         = "Of this workspace."
"""


def test_a_lock_that_cannot_be_read_says_how_to_mend_it(declared: CliWorkspace) -> None:
    declared.write("toolchains/lock.toml", "schema = 1\n[broken\n")

    ran = declared.run("toolchain", "verify")

    assert ran.code == 1
    assert "toolchains/lock.toml: the lock cannot be read" in ran.err
