"""Importing a benchmark again: what has changed, and what a checkout has that its commit lacks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_import import FOREIGN, SCALED
from tests.testkit.cli import CliWorkspace

LOCK = "imports/kb.lock.toml"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace that has imported a clone: one task, and one that is left out."""
    made = CliWorkspace.make(tmp_path_factory.mktemp("again"))
    made.write("../bench/KernelBench/level1/1_Scaled.py", SCALED)
    made.write("../bench/KernelBench/level2/1_Foreign.py", FOREIGN)
    bench = made.root / "../bench"
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(bench), *words], check=True)
    ran = made.run("import", "kernelbench", "../bench", "--name=kb")
    assert ran.code == 0, ran.err
    assert "warning" not in ran.err
    assert ran.out.endswith(f"{LOCK}: written\n")
    return made


def test_what_is_as_before_is_not_written_again(workspace: CliWorkspace) -> None:
    lock = workspace.root / LOCK
    before = lock.stat()

    again = workspace.run("import", "@kb")

    assert again.code == 0, again.err
    assert (lock.stat().st_mtime_ns, lock.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert again.out.endswith(f"{LOCK}: unchanged\n")


def test_files_that_the_commit_lacks_are_named(workspace: CliWorkspace) -> None:
    task = Path(workspace.root, "../bench/KernelBench/level1/1_Scaled.py")
    try:
        task.write_text(SCALED.replace("2.5", "3.5"))
        checked = workspace.run("import", "--check", "@kb")
        changed = workspace.run("import", "@kb")
    finally:
        task.write_text(SCALED)
    back = workspace.run("import", "@kb")

    assert checked.code == 3
    assert f"{LOCK}: stale\n  update it: kabuild import @kb\n  1 task changed" in checked.out
    assert changed.code == 0, changed.err
    assert "warning: not as in commit " in changed.err
    assert ": 1 file, KernelBench/level1/1_Scaled.py\n" in changed.err
    assert changed.out.endswith(f"{LOCK}: written\n  1 task changed: level1/1_Scaled\n")
    assert "warning" not in back.err
    assert "1 task changed: level1/1_Scaled" in back.out


def test_a_pattern_lists_what_it_covers(workspace: CliWorkspace) -> None:
    one = workspace.run("import", "--list", "@kb//level1/1_Scaled")
    level = workspace.run("import", "--list", "@kb//level2/...")
    none = workspace.run("import", "--list", "@kb//level3/...")

    assert one.out == "@kb//level1/1_Scaled  imported\n"
    assert [line.split()[:2] for line in level.out.splitlines()] == [
        ["@kb//level2/1_Foreign", "NEEDS_PACKAGE"]
    ]
    assert (none.code, none.out) == (2, "")
    assert "no task '@kb//level3/...'\n  all of them: kabuild import --list @kb" in none.err


def test_a_pattern_of_which_all_were_left_out_says_so(workspace: CliWorkspace) -> None:
    ran = workspace.run("test", "@kb//level2/...", "--agent=none")

    assert ran.code == 2
    assert "no task below '@kb//level2' was imported: 1 task left out" in ran.err
    assert "kabuild import --list @kb//level2/..." in ran.err


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (("@kb//...",), "expected an adapter and a path, or @NAME, got '@kb//...'"),
        (("@kb", "--name=other"), "--name is for a new import, and '@kb' has a name"),
        (("@kb", "../bench"), "such as: kabuild import kernelbench ../kernelbench"),
        (("aka",), "such as: kabuild import aka ../aka"),
        (("@other",), "no repository '@other'\n  known: @kb"),
    ],
)
def test_what_cannot_be_imported_again(
    workspace: CliWorkspace, what: tuple[str, ...], said: str
) -> None:
    ran = workspace.run("import", *what)

    assert ran.code == 2
    assert said in ran.err


def test_without_an_import_its_command_is_named(tmp_path: Path) -> None:
    ran = CliWorkspace.make(tmp_path).run("import", "--list", "@kb")

    assert ran.code == 2
    assert "no repository '@kb'\n  to add one: kabuild import ADAPTER PATH" in ran.err


def git(bench: Path, *words: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(bench), *author, *words], check=True)


def test_another_commit_is_imported_and_noted(workspace: CliWorkspace) -> None:
    bench, file = workspace.root / "../bench", workspace.root / "WORKSPACE.toml"
    task, before = bench / "KernelBench/level1/1_Scaled.py", file.read_text()
    was = re.findall(r"[0-9a-f]{40}", before)
    task.write_text(SCALED.replace("2.5", "3.5"))
    git(bench, "commit", "-qam", "another factor")
    try:
        checked = workspace.run("import", "--check", "@kb")
        proved = workspace.run("import", "--prove", "@kb")
        again = workspace.run("import", "kernelbench", "../bench", "--name=kb")
        after = workspace.run("import", "--check", "@kb")
    finally:
        git(bench, "reset", "-q", "--hard", "HEAD~1")

    assert checked.code == 3
    assert f"{LOCK}: stale\n  update it: kabuild import @kb\n  ../bench is at commit" in checked.out
    assert proved.code == 4, proved.err
    assert again.code == 0, again.err
    now = re.findall(r"[0-9a-f]{40}", file.read_text())
    assert len(was) == len(now) == 1
    assert was != now
    assert file.read_text() == before.replace(was[0], now[0])
    assert f"WORKSPACE.toml: commit {was[0][:12]} is {now[0][:12]} now\n" in again.out
    assert after.out.endswith(f"{LOCK}: up to date\n")
    assert workspace.run("import", "@kb").code == 0
    assert file.read_text() == before


def test_what_no_task_is_called_is_not_up_to_date(workspace: CliWorkspace) -> None:
    ran = workspace.run("import", "--check", "@kb//level9/...")

    assert ran.code == 2
    assert "error: no task '@kb//level9/...'" in ran.err


def test_a_checkout_without_a_licence_is_told_of(workspace: CliWorkspace) -> None:
    said = "this checkout has no licence file: look before you publish its files"
    licence = workspace.root / "../bench/LICENSE"

    without = workspace.run("import", "@kb")
    licence.write_text("MIT")
    try:
        licensed = workspace.run("import", "@kb")
    finally:
        licence.unlink()

    assert said in without.out
    assert said not in licensed.out
