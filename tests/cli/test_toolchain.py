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


def test_what_other_packages_declare_is_no_less_known(workspace: CliWorkspace, tree: Path) -> None:
    workspace.write("my/BUILD.toml", DECLARATION.format(home=tree))

    assert "//my:tools" in workspace.run("toolchain", "list").out
    assert "//my:tools: not pinned yet" in workspace.run("toolchain", "verify", "tools").out
    assert workspace.run("toolchain", "pin", "tools").code == 0
    assert workspace.run("toolchain", "lock").code == 0
    assert state(workspace) == "ready"
    (tree / "share").unlink()
    verified = workspace.run("toolchain", "verify", "tools")
    assert verified.code == 45
    assert "//my:tools: drifted\n  //my:tools differs from its pin" in verified.out
    (finding,) = [
        item for item in workspace.run("doctor", "--json").json if item["name"] == "tools"
    ]
    assert finding["state"] == "warning"


def test_those_with_one_name_are_told_apart(declared: CliWorkspace, tree: Path) -> None:
    declared.write("my/BUILD.toml", DECLARATION.format(home=tree))
    both = {"//toolchains/my:tools", "//my:tools"}

    found = {item["name"] for item in declared.run("doctor", "--json").json}
    assert {*both, "nvcc"} <= found
    assert "tools" not in found
    unknown = declared.run("toolchain", "pin", "xyzzy", "--from", str(tree))
    assert unknown.code == 2
    assert {*both, "nvcc"} <= {*unknown.err.replace("known: ", "").replace(",", " ").split()}


def test_a_name_means_the_one_in_toolchains_first(declared: CliWorkspace, tree: Path) -> None:
    declared.write("my/BUILD.toml", DECLARATION.format(home=tree))

    assert declared.run("toolchain", "show", "tools", "--json").json["name"] == (
        "//toolchains/my:tools"
    )


def test_a_package_that_cannot_be_loaded_is_left_out_and_named(
    declared: CliWorkspace, tree: Path
) -> None:
    declared.write("my/BUILD.toml", DECLARATION.format(home=tree).replace("tools", "others"))
    assert declared.run("toolchain", "lock").code == 0
    lock = (declared.root / "toolchains/lock.toml").read_text()
    assert "//my:others" in lock
    declared.write("my/BUILD.toml", '[[toolchain]]\nname = "others"\nrole = "r"\n')
    declared.write("task/BUILD.toml", "[[hip2hip]]\n")

    for command in (("list",), ("lock",), ("verify", "tools")):
        ran = declared.run("toolchain", *command)
        assert ran.code == 0, ran.err
        assert ran.err.startswith("left out: my/BUILD.toml:1: a toolchain has exactly one pin")
        assert "task/BUILD.toml" not in ran.err, "it has no toolchain, and was not loaded"
    assert (declared.root / "toolchains/lock.toml").read_text() == lock, "its entry is kept"


def test_what_is_no_toolchain_is_not_taken_for_one(task: CliWorkspace) -> None:
    ran = task.run("toolchain", "show", "//double")

    assert ran.code == 2
    assert "//double is not a toolchain: it is a hip2hip" in ran.err


def test_lock_locks_what_it_can(declared: CliWorkspace, tree: Path) -> None:
    absent = DECLARATION.format(home="/no/such/directory").replace("tools", "absent")
    declared.write("toolchains/absent/BUILD.toml", absent)

    ran = declared.run("toolchain", "lock")
    assert ran.code == 0, "a tree of another machine is no problem of this one"
    assert "not locked: //toolchains/absent is not on this machine" in ran.err
    lock = (declared.root / "toolchains/lock.toml").read_text()
    assert "//toolchains/my:tools" in lock
    assert "absent" not in lock

    ran = declared.run("toolchain", "lock", "tools", "absent")
    assert ran.code == 36, "it was asked for"
    assert "//toolchains/absent is not on this machine" in ran.err
    assert (declared.root / "toolchains/lock.toml").read_text() == lock


def test_lock_goes_on_after_a_problem_and_tells_of_it(declared: CliWorkspace) -> None:
    pin = 'name = "a"\nrole = "r"\ndistribution = "no-such-thing"\nversion = "1.0"\n'
    declared.write("toolchains/a/BUILD.toml", f"[[toolchain]]\n{pin}")

    ran = declared.run("toolchain", "lock")

    assert ran.code == 36
    assert "needs no-such-thing, which is not installed" in ran.err
    assert "//toolchains/my:tools" in (declared.root / "toolchains/lock.toml").read_text()


REQUIRING = """\
[[toolchain]]
name     = "tools"
role     = "shovel"
local    = "{home}"
requires = ["bin/tool", "lib64/lib.so|lib/lib.so"]
"""


@pytest.fixture
def requiring(declared: CliWorkspace, tree: Path) -> CliWorkspace:
    """The same toolchain, which says what it has to hold; its tree does."""
    declared.write("toolchains/my/BUILD.toml", REQUIRING.format(home=tree))
    (tree / "lib").mkdir()
    (tree / "lib/lib.so").touch()
    return declared


def test_what_lacks_something_cannot_be_pinned(
    requiring: CliWorkspace, tree: Path, tmp_path: Path
) -> None:
    wrappers = tmp_path / "wrappers"
    (wrappers / "bin").mkdir(parents=True)
    (wrappers / "bin/tool").write_text(f'#!/bin/sh\nexec {tree}/bin/tool "$@"\n')

    ran = requiring.run("toolchain", "pin", "tools", "--from", str(wrappers))
    assert ran.code == 2
    assert f"{wrappers} cannot be //toolchains/my:tools" in ran.err
    assert "it lacks lib64/lib.so or lib/lib.so" in ran.err
    assert f"leads to {tree}: kabuild toolchain pin //toolchains/my:tools --from {tree}" in ran.err

    ran = requiring.run("toolchain", "pin", "tools", "--from", str(tree), "--path", "bin")
    assert ran.code == 2
    assert f"bin of {tree} cannot be" in ran.err
    assert not (requiring.root / "toolchains/lock.toml").exists()

    assert requiring.run("toolchain", "pin", "tools", "--from", str(tree)).code == 0


def test_what_lacks_something_is_neither_locked_nor_ready(
    requiring: CliWorkspace, tree: Path
) -> None:
    (tree / "lib/lib.so").unlink()

    assert state(requiring) == "missing"
    ran = requiring.run("toolchain", "lock", "tools")
    assert ran.code == 36
    assert "toolchains/my/BUILD.toml:1: " in ran.err
    assert "it lacks lib64/lib.so or lib/lib.so" in ran.err


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


def test_a_tree_is_pinned_however_it_and_its_parts_are_spelt(
    declared: CliWorkspace, tree: Path
) -> None:
    tree = tree.rename(tree.with_name("my tools"))
    spelt = ("--from", f"{tree}/../{tree.name}", "--path", "bin/", "--path", "./share")
    assert declared.run("toolchain", "pin", "tools", *spelt).code == 0
    lock = (declared.root / "toolchains/lock.toml").read_text()
    assert f'home = "{tree}"\npaths = ["bin", "share"]\n' in lock
    (tree / "share").write_text("other")

    again = f"pin //toolchains/my:tools --from '{tree}' --path bin --path share"
    assert (
        f"to accept it: kabuild toolchain {again}"
        in declared.run("toolchain", "verify", "tools").out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pin", "python"), "belongs to the running Python"),
        (("pin", "nvcc"), "name a directory to use instead"),
        (("pin", "tools", "--from", "/nonexistent"), "does not exist"),
        (("pin", "tools", "--from", "{tree}", "--path", "../etc"), "there is no '../etc'"),
        (("pin", "tools", "--path", "/etc"), "there is no '/etc' in {tree}"),
    ],
)
def test_what_cannot_be_pinned(
    declared: CliWorkspace, tree: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = declared.run("toolchain", *(item.format(tree=tree) for item in arguments))

    assert ran.code == 2
    assert message.format(tree=tree) in ran.err
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
    assert "toolchains/lock.toml:2: the lock cannot be read" in ran.err
