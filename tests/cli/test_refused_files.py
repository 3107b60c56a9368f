"""What an agent leaves in place of a kernel, and what the user is told of it."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace

from .conftest import KERNEL, REFERENCE, TASK
from .test_bad_triton_candidates import KERNEL as TRITON_KERNEL

AGENT = """\
[[agent]]
name    = "spoiler"
command = ["{python}", "{files}/spoiler.py", "{kernel}", "{trial}"]
files   = ["spoiler.py"]
seconds = 100
"""
SPOILER = """\
import pathlib, sys

kernel = pathlib.Path(sys.argv[1])
text = kernel.read_text()
kernel.unlink()
if sys.argv[2] == "1":
    kernel.symlink_to("/kabuild/kernel")
elif sys.argv[2] == "2":
    kernel.write_bytes(b"\\0\\xff" * 100)
elif sys.argv[2] == "3":
    kernel.write_text(text * 40_000)
"""
WHY = (
    "it is a symbolic link",
    "it is binary: byte 1 is not UTF-8",
    "bytes, at most 1048576 are allowed",
    "it is gone",
)


@pytest.mark.parametrize(
    ("kind", "suffix", "kernel"),
    [
        ("hip2hip", "hip", KERNEL),
        ("torch2hip", "hip", KERNEL),
        ("triton2triton", "py", TRITON_KERNEL),
    ],
)
def test_the_gate_says_why_a_kernel_was_refused(
    quick: CliWorkspace, kind: str, suffix: str, kernel: str
) -> None:
    declared = TASK.replace("hip2hip", kind).replace("double.hip", f"double.{suffix}")
    quick.write("double/BUILD.toml", declared)
    quick.write(f"double/double.{suffix}", kernel)
    quick.write("double/reference.py", REFERENCE)
    quick.write("agents/BUILD.toml", AGENT)
    quick.write("agents/spoiler.py", SPOILER)
    flags = ("--agent=//agents:spoiler", f"--trials={len(WHY)}", "--gates=compile")

    ran = quick.run("test", "//double", *flags, "--json")
    shown = quick.run("test", "//double", *flags)

    assert (ran.code, shown.code) == (3, 3), ran.err
    targets = ran.json["targets"]
    assert [(item["verdict"], item["reason"]) for item in targets] == [
        ("FAIL", "NOT_HANDED_IN") for _ in WHY
    ]
    for item, why in zip(targets, WHY, strict=True):
        assert item["summary"].startswith(f"the agent's double.{suffix} was refused: ")
        assert item["summary"].endswith(why)
    printed = " ".join(shown.out.split())
    assert f"FAIL (NOT_HANDED_IN): the agent's double.{suffix} was refused: {WHY[0]}" in printed
