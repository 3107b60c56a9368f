"""``kabuild import`` on checkouts that are broken, or made to harm whoever imports them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.processes import busy_seconds, descendants

from .test_import import SCALED

LEVEL = "../bench/KernelBench/level1"
STANZA = '1\n\n[[task]]\nname = "../../../out"\nfiles = {}\n[task.attrs]\nconfigs'
FORGED = """
import json, os
facts = {"origin": "0" * 64, "attrs": {"call": "y = ModelNew()(x)", %r: 1}}
open("out/facts.json", "w").write(json.dumps(facts))
os._exit(0)
"""
ENDLESS = """
import ctypes
ctypes.CDLL(None).prctl(15, b"endless")  # its name, by which it is found
while True:
    pass
"""


@pytest.fixture
def workspace(tmp_path: Path) -> CliWorkspace:
    return CliWorkspace.make(tmp_path)


def test_facts_that_a_benchmark_forges_make_no_other_task(workspace: CliWorkspace) -> None:
    """Nor do files that end the process. The honest task beside them is imported."""
    workspace.write(f"{LEVEL}/1_Good.py", SCALED)
    workspace.write(f"{LEVEL}/2_Forged.py", FORGED % STANZA)
    workspace.write(f"{LEVEL}/3_Ends.py", "import sys\nsys.exit(0)\n")

    ran = workspace.run("import", "kernelbench", "../bench")
    listed = workspace.run("import", "--list", "@kernelbench").out.splitlines()
    query = workspace.run("query", "@kernelbench//...")

    assert ran.code == 0, ran.err
    assert "1 of 3 tasks imported" in ran.out
    assert "kabuild import --list @kernelbench" in ran.out
    refused = f"a task has no attribute '{' '.join(STANZA.splitlines())[:60]}'"
    assert [line.partition("//level1/")[2].split("  ", 2) for line in listed] == [
        ["1_Good", "imported"],
        ["2_Forged", "CAPTURE_FAILED", f"the output of its capture cannot be read: {refused}"],
        ["3_Ends", "CAPTURE_FAILED", "its code ended the process, as sys.exit() does"],
    ]
    assert query.out.split() == ["@kernelbench//level1/1_Good:1_Good"]


def test_tasks_whose_files_cannot_be_read_are_left_out_with_the_reason(
    workspace: CliWorkspace,
) -> None:
    level = workspace.root / LEVEL
    (level / "1_dir.py").mkdir(parents=True)
    os.mkfifo(level / "2_pipe.py")
    (level / "3_gone.py").symlink_to("nowhere")
    (level / "4_zero.py").symlink_to("/dev/zero")
    with (level / "5_large.py").open("wb") as file:
        file.truncate(5 << 30)
    (level / "6_outside.py").symlink_to(workspace.root / "WORKSPACE.toml")

    ran = workspace.run("import", "kernelbench", "../bench", timeout=60)

    assert ran.code == 0, ran.err
    assert "0 of 6 tasks imported" in ran.out
    assert "left out: 6 UNREADABLE" in ran.out
    listed = workspace.run("import", "--list", "@kernelbench")
    said = [line.split("  ", 2)[2] for line in listed.out.splitlines()]
    for sentence, why in zip(
        said,
        [
            "1_dir.py cannot be read: Is a directory",
            "2_pipe.py cannot be read: is a device or a pipe, expected a file",
            "3_gone.py cannot be read: No such file or directory",
            "4_zero.py cannot be read: lies outside of the checkout",
            "5_large.py cannot be read: has more than 67,108,864 bytes",
            "6_outside.py cannot be read: lies outside of the checkout",
        ],
        strict=True,
    ):
        assert sentence == f"KernelBench/level1/{why}"
    lock = tomllib.loads((workspace.root / "imports/kernelbench.lock.toml").read_text())
    assert all(task["files"] == {} for task in lock["task"])
    assert workspace.run("import", "--check", "@kernelbench").code == 0


def test_what_became_unreadable_is_told_by_a_check(workspace: CliWorkspace) -> None:
    path = workspace.write(f"{LEVEL}/1_Good.py", SCALED)
    assert workspace.run("import", "kernelbench", "../bench").code == 0
    path.unlink()
    path.mkdir()

    ran = workspace.run("import", "--check", "@kernelbench")

    assert ran.code == 3
    assert "  no longer imported: level1/1_Good: UNREADABLE  KernelBench/level1/1_Go" in ran.out


@pytest.mark.parametrize("text", [None, "no directory\n"])
def test_a_checkout_without_tasks_is_an_error(workspace: CliWorkspace, text: str | None) -> None:
    if text is None:
        (workspace.root / LEVEL).mkdir(parents=True)
    else:
        workspace.write(LEVEL, text)
    before = (workspace.root / "WORKSPACE.toml").read_text()

    ran = workspace.run("import", "kernelbench", "../bench")

    assert ran.code == 2
    assert "no file matches KernelBench/level[1-4]/*.py" in ran.err
    assert (workspace.root / "WORKSPACE.toml").read_text() == before


def test_an_interrupted_import_changes_nothing(workspace: CliWorkspace) -> None:
    workspace.write(f"{LEVEL}/1_Endless.py", ENDLESS)
    before = (workspace.root / "WORKSPACE.toml").read_text()
    process = subprocess.Popen(
        workspace.command("import", "kernelbench", "../bench"),
        cwd=workspace.root,
        env=workspace.environment(),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 100
    while not any(busy_seconds(p, "endless") > 0.2 for p in descendants(process.pid)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)

    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 8, said
    assert "the import was interrupted; nothing was written" in said
    assert (workspace.root / "WORKSPACE.toml").read_text() == before
    assert not (workspace.root / "imports").exists()


def test_two_names_that_become_one_package_are_two_tasks(workspace: CliWorkspace) -> None:
    for stem in ("2_a b", "2_a_b", "3_\x1b[31m"):
        (workspace.root / LEVEL / f"{stem}.py").mkdir(parents=True)

    ran = workspace.run("import", "kernelbench", "../bench")
    listed = workspace.run("import", "--list", "@kernelbench")

    assert ran.code == listed.code == 0, ran.err + listed.err
    assert "0 of 3 tasks imported" in ran.out
    names = [line.split("  ")[0] for line in listed.out.splitlines()]
    assert len(set(names)) == 3
    assert "@kernelbench//level1/2_a_b" in names
    assert "\x1b" not in listed.out
