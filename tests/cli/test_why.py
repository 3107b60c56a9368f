"""``why``, ``aquery`` and ``diff-keys``: they tell what differs, and run nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

from .conftest import KERNEL

COMPILE = "//tasks/family0/t0:t0.compile"


@pytest.fixture
def workspace(tmp_path: Path) -> CliWorkspace:
    generate(tmp_path / "work", 2, shared=2, age=0)
    made = CliWorkspace(tmp_path / "work", tmp_path / "store")
    assert made.run("test", "//...").code == 0
    return made


def edit(workspace: CliWorkspace, text: str) -> None:
    (workspace.root / "tasks/family0/t0/kernel.hip").write_text(text)


def key(workspace: CliWorkspace, label: str = COMPILE) -> str:
    (action,) = [
        item for item in workspace.run("aquery", label, "--json").json["actions"]
        if item["label"] == label
    ]  # fmt: skip
    return str(action["key"])


def test_unchanged_is_cached_under_its_key(workspace: CliWorkspace) -> None:
    ran = workspace.run("why", COMPILE)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        f"{COMPILE}: cached",
        f"  key {key(workspace)}",
        "  its result is stored under this key; nothing changed",
    ]


def test_a_change_is_told_with_its_lines_at_the_first_cause(workspace: CliWorkspace) -> None:
    edit(workspace, "// kernel 0\n// another\n")
    ran = workspace.run("why", "//tasks/family0/t0")
    lines = ran.out.splitlines()
    assert "//tasks/family0/t0:t0.score: not known yet" in lines
    assert f"  its inputs depend on {COMPILE}" in lines
    assert lines.count(f"{COMPILE}: would run") == 1
    assert lines[-1] == "    +// another"
    assert not ran.executed


def test_what_is_not_text_is_told_by_digest_alone(workspace: CliWorkspace) -> None:
    (workspace.root / "tasks/family0/t0/kernel.hip").write_bytes(b"\xff\x00")
    lines = workspace.run("why", COMPILE).out.splitlines()
    assert lines[-1].startswith("  input kernel: ")


def test_a_build_is_compared_with_the_last_one_of_its_own_agent(quick: CliWorkspace) -> None:
    """What another agent handed in since is no cause of anything."""
    kernel, label = quick.root / "double/solutions/expert/double.hip", "//double:double.compile"
    kernel.write_text(f"// first\n{KERNEL}")
    for agent in ("expert", "none"):
        assert quick.run("build", label, f"--agent={agent}").code == 0
    kernel.write_text(f"// second\n{KERNEL}")
    lines = quick.run("why", label, "--agent=expert").out.splitlines()
    changed = [line for line in lines if line.startswith(("    -", "    +"))]
    assert changed[-2:] == ["    -// first", "    +// second"]
    other = quick.run("why", label, "--solution=double/solutions/expert").out
    assert "no earlier build with this agent or solution" in other


def test_without_an_earlier_build_it_says_so(tmp_path: Path) -> None:
    generate(tmp_path / "work", 1, shared=1)
    ran = CliWorkspace(tmp_path / "work", tmp_path / "store").run("why", COMPILE)
    assert "no earlier result in this workspace's out/" in ran.out


def test_a_missing_source_cannot_run(workspace: CliWorkspace) -> None:
    rule = workspace.root / "rules/copied/rule.py"
    rule.write_text(rule.read_text().replace('"rules/copied/data"', '"rules/copied/gone"'))
    ran = workspace.run("why", COMPILE)
    assert f"{COMPILE}: cannot run" in ran.out
    assert "no file 'rules/copied/gone' in the workspace" in ran.out


def test_actions_are_printed_with_what_their_keys_are_made_of(workspace: CliWorkspace) -> None:
    text = workspace.run("aquery", "//tasks/family0/t0:t0.correctness").out
    assert "input     kernel  <- workspace:tasks/family0/t0/kernel.hip" in text
    assert f"input     before  <- {COMPILE} made" in text
    assert "platform  name=cpu" in text
    actions = workspace.run("aquery", "//...", "--json").json
    assert actions["schema"] == 1
    assert len(actions["actions"]) == 10
    assert {action["state"] for action in actions["actions"]} == {"cached"}


def test_two_keys_are_compared_by_prefix(workspace: CliWorkspace) -> None:
    edit(workspace, '{"seconds": 900, "name": "mine"}')
    old = key(workspace)
    edit(workspace, '{"seconds": 901, "name": "mine"}')
    new = key(workspace)
    assert new != old
    ran = workspace.run("diff-keys", old[:10], new)
    assert ran.code == 0
    assert ran.out.splitlines()[1:] == ["  kernel: seconds: 900 -> 901"]
    assert workspace.run("diff-keys", old, old).out == "the keys are identical\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("xyz", "'xyz' is not a valid key"),
        ("ab", "'ab' is not a valid key"),
        ("0" * 64, "nothing stored begins with"),
    ],
)
def test_what_is_no_key_is_named(workspace: CliWorkspace, wrong: str, message: str) -> None:
    ran = workspace.run("diff-keys", wrong, wrong)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_blob_that_is_no_key_is_named(workspace: CliWorkspace) -> None:
    verdict = json.loads(workspace.run("test", "//...", "--json").out)["targets"][0]["key"]
    blob = next(
        p.name
        for p in (workspace.store / "cas").rglob("*")
        if p.is_file() and p.stat().st_size < 30
    )
    ran = workspace.run("diff-keys", verdict, blob)
    assert ran.code != 0
    assert "are not stored here" in ran.err
