"""Kernels are ranked by modelled times in a session for a GPU, by the cpu platform's counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.testkit.cli import CliWorkspace
from tests.testkit.fake_nvidia import compile_driver, gpu, make_fake
from tests.testkit.two_gpus import PROGRAM

from .conftest import declare

AGENT = """\
[[agent]]
name    = "asks"
command = ["{python}", "{files}/asks.py", "{kernel}"]
files   = ["asks.py"]
seconds = 300
counts  = "//toolchains/hip:{platform}_counter"
"""
ASKS = """\
import json, pathlib, sys
import kabuild_check

good = pathlib.Path(sys.argv[1]).read_text()
slow = good.replace("y[i] = 2.0f * x[i]", "for (int k = 0; k < 64; ++k) y[i] += x[i] / (k + y[i])")
print(json.dumps(kabuild_check.rank([slow, "int main", good, good], seconds=300)))
print(json.dumps(kabuild_check.rank([good], seconds=0)))
counted = kabuild_check.check(good, ["analyze"])
print(json.dumps(counted.verdicts[-1]["analysis"]["calls"][0]["launches"][0]["wave"]))
"""


TRITON = """\
import json, pathlib, sys
import kabuild_check

kernel = pathlib.Path(sys.argv[1]).read_text()
try:
    kabuild_check.rank([kernel], seconds=300)
except kabuild_check.CheckError as error:
    print(json.dumps([error.machine, str(error)]))
counted = kabuild_check.check(kernel, ["analyze"])
print(json.dumps(counted.verdicts[-1]["analysis"]["calls"][0]["accesses"][0]["kernel"]))
"""


def ask(workspace: CliWorkspace, directory: Path, asks: str, package: str) -> list[object]:
    """What the agent prints in a session on a machine with NVIDIA's driver, but no GPU."""
    workspace.write("agents/BUILD.toml", AGENT)
    workspace.write("agents/asks.py", asks)
    name = package.rpartition("/")[2]
    fake = make_fake(directory / "machine", compile_driver(directory))
    fake.has(gpu(0))
    (fake.root / "dev/nvidia-caps").mkdir()
    arguments = ("build", f"//{package}:{name}.agent", "--agent=//agents:asks")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(fake.root), *arguments, "--platform=cuda"],
        cwd=workspace.root,
        env={**workspace.environment(), **fake.env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    out = workspace.root / f"out/{package}/{name}.agent/transcript.jsonl"
    entries = [*map(json.loads, out.read_text().splitlines())]
    return [json.loads(entry["text"]) for entry in entries if entry["role"] == "assistant"]


def test_a_session_for_a_gpu_counts_on_the_cpu(workspace: CliWorkspace, tmp_path: Path) -> None:
    """With warps as NVIDIA has them; what does not compile has no time, and so has what is late."""
    declare(workspace, "double")

    ranked, late, wave = ask(workspace, tmp_path, ASKS, "double")

    assert isinstance(ranked, list)
    slow, none, good, same = ranked
    assert none is None
    assert good == same
    assert slow > 2 * good > 0
    assert good < 2000, "without its launch, which takes 2 us"
    assert late == [None]
    assert wave == 32


def test_triton_kernels_are_counted_there_but_no_time_is_modelled(
    workspace: CliWorkspace, tmp_path: Path
) -> None:
    workspace.adopt("tasks/triton2triton/swiglu")

    refused, kernel = ask(workspace, tmp_path, TRITON, "tasks/triton2triton/swiglu")

    assert refused == [False, "nothing models the times of this session's device"]
    assert kernel == "silu_kernel"
