"""What an agent found out survives an interrupted run; kernels are timed against each other."""

from __future__ import annotations

import json
import signal
import subprocess
import time

from kabuild.store.paths import journals_of
from tests.testkit.cli import CliWorkspace

from .conftest import KERNEL

AGENT = """\
[[agent]]
name    = "keeps"
command = ["{python}", "{files}/keeps.py", "{kernel}", "{journal}"]
files   = ["keeps.py"]
resumes = true
seconds = 100
"""
KEEPS = """\
import pathlib, subprocess, sys, time
import kabuild_check

kernel, journal = map(pathlib.Path, sys.argv[1:])
if not journal.read_text():
    journal.write_text("half of it")
    time.sleep(600)
fast = kernel.read_text()
slow = fast.replace("y[i] =", "for (int k = 0; k < 20000; ++k) ((volatile float*)y)[i] =")
tries = (kabuild_check.check(fast, ("perf",), against=slow) for _ in range(3))
faster = any(answer.speedup > 2 for answer in tries)  # a busy machine gives the interval's end
print(faster, journal.read_text())
other = kernel.with_name("other.hip")
for text, gate in (("int main", "perf"), (slow, "compile")):
    other.write_text(text)
    told = subprocess.run(
        ["kabuild-check", gate, f"--against={other}"], capture_output=True, text=True
    )
    print(told.returncode, told.stdout + told.stderr)
for bad in ("int main", "\\0"):
    try:
        kabuild_check.check(fast, ("perf",), against=bad)
    except kabuild_check.CheckError as error:
        print(error)
"""


def test_a_killed_run_leaves_its_journal_to_the_next(quick: CliWorkspace) -> None:
    quick.write("agents/BUILD.toml", AGENT)
    quick.write("agents/keeps.py", KEEPS)
    build = ("build", "//double:double.agent", "--agent=//agents:keeps")
    first = subprocess.Popen(
        quick.command(*build), cwd=quick.root, env=quick.environment(), start_new_session=True
    )
    while not any(path.read_text() for path in journals_of(quick.store).glob("*")):
        assert first.poll() is None, "it ended before it was killed"
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait(60)

    second = quick.run(*build)

    assert second.code == 0, second.err
    made = quick.root / "out/double/double.agent"
    entries = map(json.loads, (made / "transcript.jsonl").read_text().splitlines()[1:])
    said = [entry["text"] for entry in entries]
    assert said[0] == "True half of it"
    refused = "kabuild-check: the kernel is refused: the kernel to compare with does not compile"
    assert said[1].startswith(f"2 {refused}")
    assert any(text.startswith("0 compile: PASS") for text in said)
    assert said[-1].endswith("it is binary: byte 0 is zero")
    assert (made / "solution/double.hip").read_text() == KERNEL


def test_a_journal_has_to_be_declared(quick: CliWorkspace) -> None:
    quick.write("agents/BUILD.toml", AGENT.replace("resumes = true\n", ""))
    quick.write("agents/keeps.py", KEEPS)

    ran = quick.run("build", "//double:double.agent", "--agent=//agents:keeps")

    assert ran.code != 0
    assert "{journal} needs resumes = true" in ran.err
