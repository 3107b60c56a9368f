"""A compiler of the machine, adopted by content, in place of the pinned one."""

from __future__ import annotations

import shutil

import pytest

from tests.testkit.cli import CliWorkspace

HIP = """\
[[toolchain]]
name  = "gcc"
role  = "{role}"
local = "/usr"
paths = ["bin/g++", "bin/as", "bin/ld"]

[[hip_cpu]]
name     = "hip"
compiler = ":gcc"
program  = "bin/g++"
"""


@pytest.fixture
def adopted(task: CliWorkspace) -> CliWorkspace:
    """The task compiled by the system's g++."""
    task.write("my/BUILD.toml", HIP.format(role="c++-compiler"))
    build_file = task.root / "double/BUILD.toml"
    build_file.write_text(build_file.read_text().replace("flops ", 'hip = "//my:hip"\nflops ', 1))
    return task


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to adopt")
def test_an_adopted_compiler_judges_as_well(adopted: CliWorkspace) -> None:
    ran = adopted.run("test", "//double", "--gates=compile,correctness", "--json")

    assert ran.code == 0, ran.out + ran.err
    assert ran.gate("correctness")["verdict"] == "PASS"


def test_a_toolchain_that_is_no_compiler_is_refused(adopted: CliWorkspace) -> None:
    adopted.write("my/BUILD.toml", HIP.format(role="shovel"))

    ran = adopted.run("test", "//double")

    assert ran.code == 1
    assert "my/BUILD.toml:7" in ran.err
    assert "its role is 'shovel'" in ran.err
