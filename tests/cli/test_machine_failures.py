"""What the machine refuses is said clearly, never cached and never blamed on a candidate."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace, Ran
from tests.testkit.generated import generate

from .conftest import KERNEL

FAST = "--gates=compile,correctness"
PRIVATE_MOUNTS = "-m" if os.geteuid() == 0 else "-Urm"


@pytest.fixture
def quick(quick: CliWorkspace) -> CliWorkspace:
    """``//double`` with a kernel that no store has compiled."""
    for file in ("double/double.hip", "double/solutions/expert/double.hip"):
        quick.write(file, KERNEL.replace("256", "64"))
    return quick


def run_in_shell(workspace: CliWorkspace, unshare: str, script: str, *arguments: str) -> Ran:
    """Call the program as ``"$@"`` of a shell script in fresh namespaces, or skip."""
    probe = subprocess.run(["unshare", *unshare.split(), "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"unshare {unshare}: {probe.stderr.decode().strip()}")
    done = subprocess.run(
        ["unshare", *unshare.split(), "sh", "-ec", script, "sh", *workspace.command(*arguments)],
        cwd=workspace.root,
        env=workspace.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def is_clear(ran: Ran) -> bool:
    return ran.code == 36 and "Traceback" not in ran.err + ran.out and "FAIL" not in ran.out


# --- the store ---------------------------------------------------------------------------------


def test_a_store_that_is_a_file_is_named(quick: CliWorkspace, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ran = CliWorkspace(quick.root, tmp_path / "file").run("test", "//double")

    assert is_clear(ran)
    assert str(tmp_path / "file") in ran.err
    assert len(ran.err.splitlines()) <= 3


def test_a_store_that_may_not_be_written_is_named(quick: CliWorkspace, tmp_path: Path) -> None:
    """On a read-only file system, which refuses root, too."""
    refused = tmp_path / "read-only"
    refused.mkdir()
    workspace = CliWorkspace(quick.root, refused / "store")
    script = f'mount -t tmpfs -o ro none {refused}; exec "$@"'

    ran = run_in_shell(workspace, PRIVATE_MOUNTS, script, "test", "//double")

    assert is_clear(ran), ran
    assert f"the store at {refused}/store cannot be written: Read-only file system" in ran.err
    assert "KABUILD_CACHE" in ran.err


def test_a_full_disk_is_named_and_nothing_is_blamed(quick: CliWorkspace, tmp_path: Path) -> None:
    """The store is on a file system that has 256 KiB left."""
    full = tmp_path / "full"
    full.mkdir()
    mount = f"mount -t tmpfs none {full}; cp -r {quick.store}/. {full}"
    used = f"$(df -k --output=used {full} | tail -n 1)"
    script = f'{mount}; mount -o remount,size=$(({used} + 256))k {full}; exec "$@"'
    quick.write("double/solutions/expert/double.hip", KERNEL + "// x" * 200_000)

    ran = run_in_shell(
        CliWorkspace(quick.root, full), PRIVATE_MOUNTS, script, "test", "//double", FAST
    )

    assert is_clear(ran), ran
    assert "INFRA" in ran.out
    assert f"the store at {full} is full: No space left on device" in ran.out
    assert "kabuild cache gc --max_size=SIZE" in ran.out
    assert "kabuild clean" not in ran.out, "which removes nothing of the store"


def test_a_store_that_becomes_writable_again_is_used(quick: CliWorkspace) -> None:
    """Nothing that could not be judged was remembered."""
    blobs = quick.store / "cas"
    kept = quick.store.parent / "kept"
    blobs.rename(kept)
    blobs.touch()
    broken = quick.run("test", "//double", FAST)
    blobs.unlink()
    kept.rename(blobs)

    assert is_clear(broken), broken
    assert quick.run("test", "//double", "--gates=compile").code == 0


def test_out_that_cannot_be_written_is_a_warning(quick: CliWorkspace) -> None:
    """It only shows what the store has."""
    (quick.root / "out").write_text("not a directory")

    ran = quick.run("test", "//double", "--gates=compile")

    assert ran.code == 0, ran.err
    assert "warning: out/ is not complete: Not a directory" in ran.err


def test_what_a_killed_build_left_of_out_is_mended_by_the_next(quick: CliWorkspace) -> None:
    """It is killed between the files of a view and their mark."""
    out = quick.root / "out"
    quick.run("test", "//double", "--gates=compile")
    view = out / "double/double.compile"
    for left in (view / ".key", out / "test.xml"):
        left.unlink()

    ran = quick.run("test", "//double", "--gates=compile", "--nocache_test_results")

    assert ran.code == 0, ran.err
    assert "warning" not in ran.err
    assert (view / ".key").exists()
    assert (out / "test.xml").exists()


def test_a_part_of_out_that_cannot_be_written_costs_no_other(quick: CliWorkspace) -> None:
    out = quick.root / "out"
    (out / "double").mkdir(parents=True)
    (out / "double/double.compile").write_text("not a directory")

    ran = quick.run("test", "//double", "--gates=compile")

    assert ran.code == 0, ran.err
    assert ran.err.count("warning: out/ is not complete: ") == 1
    assert str(out / "double/double.compile") in ran.err
    assert (out / "test.xml").exists()


# --- sandboxes ---------------------------------------------------------------------------------

OWN = "//double:double.baseline.compile"
"""Compiled first; the candidate is the same kernel, and so has the same key."""

REFUSE = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'


def test_without_namespaces_there_is_a_warning_and_no_verdict(quick: CliWorkspace) -> None:
    """Kernels are compiled, but no candidate is let near its judge."""
    ran = run_in_shell(quick, "-Ur", REFUSE, "test", "//double", FAST)

    assert is_clear(ran), ran
    assert ran.err.count("warning: this machine does not allow sandboxes") == 1
    assert "max_user_namespaces" in ran.err
    assert "kabuild doctor" in ran.err
    assert "commands can see and change this machine's files" in ran.err
    assert "correctness: could not be judged" in ran.out.replace("double.", "")
    assert "it ran without a sandbox: 'kabuild doctor' says how to get one" in ran.out
    assert "PASS     INFRA" in ran.out

    after = quick.run("test", "//double", "--gates=compile")
    assert after.code == 0
    assert after.executed == {OWN}, "a result without a sandbox was shared"
    assert "not hermetic" not in after.out


LEAKS = """
import pathlib
import torch
pathlib.Path("{mark}").touch()

def build():
    return torch.nn.Linear(2, 2)

def inputs(generator):
    return (torch.rand(2, 2, generator=generator),)
"""
"""A model that tells whether it ran as the user."""


def test_without_namespaces_nobodys_model_runs_unless_asked(
    quick: CliWorkspace, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    quick.write("net.py", LEAKS.format(mark=mark))

    refused = run_in_shell(quick, "-Ur", REFUSE, "model", "profile", "net.py")

    assert is_clear(refused), refused
    assert "error: a model's code needs a sandbox, and this machine does not allow" in refused.err
    assert "max_user_namespaces" in refused.err
    assert "kabuild doctor" in refused.err
    assert not mark.exists()

    asked = run_in_shell(quick, "-Ur", REFUSE, "model", "profile", "net.py", "--sandbox=none")
    assert asked.code == 0, asked
    assert mark.exists()


def test_without_namespaces_no_benchmark_runs(quick: CliWorkspace, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    quick.write("bench/KernelBench/level1/1_x.py", f"open('{mark}', 'w')")

    ran = run_in_shell(quick, "-Ur", REFUSE, "import", "kernelbench", "bench")

    assert is_clear(ran), ran
    assert "a benchmark's code needs a sandbox" in ran.err
    assert "--sandbox=none" in ran.err
    assert not mark.exists()


MARKS = """
import pathlib
import torch
try:
    pathlib.Path("{mark}").touch()
except OSError:
    pass

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def test_without_namespaces_no_imported_task_is_judged(quick: CliWorkspace, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    quick.write("bench/KernelBench/level1/1_x.py", MARKS.format(mark=mark))
    assert quick.run("import", "kernelbench", "bench").code == 0

    for command in ("test", "validate"):
        ran = run_in_shell(quick, "-Ur", REFUSE, command, "@kernelbench//...")
        assert is_clear(ran), ran
        assert "a benchmark's code needs a sandbox" in ran.err
        assert not mark.exists()

    asked = run_in_shell(
        quick, "-Ur", REFUSE, "test", "@kernelbench//...", "--agent=none", "--sandbox=none"
    )
    assert "a benchmark's code needs a sandbox" not in asked.err
    assert mark.exists()


@pytest.mark.parametrize("gates", [FAST, "--gates=compile"])
def test_without_namespaces_nothing_is_published(quick: CliWorkspace, gates: str) -> None:
    ran = run_in_shell(quick, "-Ur", REFUSE, "publish", "//double", gates, "-o", "x.kab")

    assert is_clear(ran), ran
    assert "kabuild doctor" in ran.err
    assert not (quick.root / "x.kab").exists()


def test_doctor_says_what_to_do_about_namespaces(quick: CliWorkspace) -> None:
    ran = run_in_shell(quick, "-Ur", REFUSE, "doctor")

    assert ran.code == 36
    (line,) = [text for text in ran.out.splitlines() if text.startswith("PROBLEM  namespaces")]
    assert "max_user_namespaces" in line
    assert "allow unprivileged user namespaces" in ran.out


def test_sandboxes_can_be_done_without_and_results_say_so(quick: CliWorkspace) -> None:
    """The actions run bare; the judge still puts the candidate into a sandbox."""
    bare = (FAST, "--sandbox=none")
    first = quick.run("test", "//double", *bare, "--json")
    again = quick.run("test", "//double", *bare)
    hermetic = quick.run("test", "//double", "--gates=compile", "--json")
    better = quick.run("test", "//double", "--gates=compile", "--sandbox=none", "--json")

    assert first.code == 0, first.out + first.err
    assert first.err.count("warning: actions run without sandboxes, as requested") == 1
    assert [entry["hermetic"] for entry in first.json["targets"]] == [False, False]
    assert " 0 executed;" in again.out
    assert "cached, not hermetic" in again.out
    assert hermetic.gate("compile")["hermetic"]
    assert hermetic.executed == {OWN}, "a result without a sandbox was shared"
    assert hermetic.gate("compile")["key"] != first.gate("compile")["key"]
    assert better.gate("compile")["hermetic"]


def test_a_debugged_sandbox_is_kept_and_named(quick: CliWorkspace) -> None:
    ran = quick.run("build", "//double:double.compile", "--sandbox_debug")

    assert ran.code == 0
    kept = [line.rpartition(" ")[2] for line in ran.err.splitlines() if " is kept at " in line]
    assert kept
    assert any((Path(path) / "exec/candidate/double.hip").is_file() for path in kept)


# --- tools -------------------------------------------------------------------------------------


def test_a_missing_compiler_says_how_to_get_it(quick: CliWorkspace) -> None:
    """A workspace whose zig is a distribution that is not installed."""
    quick.write(
        "toolchains/zig/BUILD.toml",
        '[[toolchain]]\nname = "zig"\nrole = "c++-compiler"\n'
        'distribution = "no-such-compiler"\nversion = "1.2"\n',
    )

    ran = quick.run("test", "//double")

    assert is_clear(ran), ran
    assert "toolchains/zig/BUILD.toml:1" in ran.err
    assert "no-such-compiler" in ran.err
    assert "-m pip install 'no-such-compiler==1.2'" in ran.err


def test_another_version_of_a_compiler_is_not_taken_for_it(quick: CliWorkspace) -> None:
    quick.write(
        "toolchains/zig/BUILD.toml",
        '[[toolchain]]\nname = "zig"\nrole = "c++-compiler"\n'
        'distribution = "ziglang"\nversion = "0.1.0"\n',
    )

    ran = quick.run("test", "//double")

    assert ran.code == 45, ran
    assert "Traceback" not in ran.err
    assert "ziglang" in ran.err
    assert "0.1.0" in ran.err


def test_what_is_cached_needs_a_store_to_read_only(tmp_path: Path) -> None:
    """``test`` has an answer to remember and warns once; others may have nothing to save."""
    root, store = tmp_path / "workspace", tmp_path / "store"
    generate(root, 2, shared=1, age=0)
    workspace = CliWorkspace(root, store)
    assert workspace.run("test", "//...").code == 0
    script = f'mount --bind {store} {store}; mount -o remount,bind,ro {store}; exec "$@"'

    for asked in (("test", "//..."), ("build", "//..."), ("publish", "//...", "-o", "x.kab")):
        ran = run_in_shell(workspace, PRIVATE_MOUNTS, script, *asked)
        assert ran.code == 0, ran
        warnings = ran.err.count(f"warning: the store at {store} cannot be written")
        assert warnings == 1 or (warnings == 0 and asked[0] != "test"), ran
    afresh = run_in_shell(
        workspace, PRIVATE_MOUNTS, script, "test", "//...", "--nocache_test_results"
    )
    assert is_clear(afresh)
    assert "cannot be written: Read-only file system" in afresh.out + afresh.err
