"""Tasks whose module is a text of a JSON file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace

MODULE = "import torch\n\n\ndef run(x):\n    return x * 2 + 1\n"
REFERENCE = """
import torch

def inputs(config, generator):
    return {"x": torch.randn(config["rows"], generator=generator)}

def reference(x, **_):
    return {"y": x * 2 + 1}
"""
BUILD = """
[[call]]
name      = "shift"
kernel    = "shift.json"
member    = "text"
reference = "reference.py"
brief     = "Twice a vector, and one more: y = 2 x + 1, for each element of it."
call      = "y = run(x)"
inputs    = { x = "T[rows]" }
outputs   = { y = "T[rows]" }
dims      = { rows = "1..4096" }
dtypes    = ["f32"]
configs   = [{ rows = 512 }]
"""
AGENT = """
[[agent]]
name    = "reader"
command = ["{python}", "{files}/reader.py", "{kernel}"]
files   = ["reader.py"]
seconds = 60
"""
READER = """
import pathlib, sys

kernel = pathlib.Path(sys.argv[1])
text = kernel.read_text()
assert kernel.name == "shift.py" and text == kernel.with_name("reference.py").read_text()
kernel.write_text(text.replace("+ 1", "+ 2"))
"""
GATES = "--gates=compile,correctness"


@pytest.fixture
def workspace(tmp_path: Path) -> CliWorkspace:
    made = CliWorkspace.make(tmp_path)
    made.write("tasks/BUILD.toml", BUILD)
    made.write("tasks/reference.py", REFERENCE)
    made.write("tasks/shift.json", json.dumps({"text": MODULE, "count": 3}))
    return made


def test_solutions_are_judged_beside_the_module_in_the_file(workspace: CliWorkspace) -> None:
    workspace.write("right.py", MODULE.replace("x * 2", "x + x"))
    workspace.write("wrong.py", MODULE.replace("+ 1", "- 1"))

    for flag, code in (("agent=none", 0), ("solution=right.py", 0), ("solution=wrong.py", 3)):
        ran = workspace.run("test", "//tasks:shift", f"--{flag}", GATES, "--json")
        assert ran.code == code, (flag, ran.out, ran.err)
    assert ran.gate("correctness")["reason"] == "WRONG_RESULT"


def test_an_agent_edits_the_module(workspace: CliWorkspace) -> None:
    """It finds the module twice, and hands in a wrong one."""
    workspace.write("agents/BUILD.toml", AGENT)
    workspace.write("agents/reader.py", READER)

    ran = workspace.run("test", "//tasks:shift", "--agent=//agents:reader", GATES, "--json")

    assert (ran.code, ran.gate("correctness")["reason"]) == (3, "WRONG_RESULT"), ran.out + ran.err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('member    = "text"', 'member    = "code"', "shift.json has no string 'code'"),
        ('member    = "text"', 'member    = "count"', "shift.json has no string 'count'"),
        ('kernel    = "shift.json"', 'kernel    = "reference.py"', "is not a .json file, which"),
        ('member    = "text"', "", "kernel 'shift.json' is not a .py file"),
    ],
)
def test_a_declaration_without_a_module_is_refused(
    workspace: CliWorkspace, before: str, after: str, said: str
) -> None:
    workspace.write("tasks/BUILD.toml", BUILD.replace(before, after))

    ran = workspace.run("test", "//tasks:shift", "--agent=none", GATES)

    assert ran.code == 1
    assert said in ran.out + ran.err
    assert "Traceback" not in ran.out + ran.err


def test_a_file_that_is_not_json_is_named_with_its_mistake(workspace: CliWorkspace) -> None:
    workspace.write("tasks/shift.json", '{"text": ')

    ran = workspace.run("test", "//tasks:shift", "--agent=none", GATES)

    assert ran.code == 1
    assert "shift.json is not a JSON file: Expecting value: line 1 column 10" in ran.out
