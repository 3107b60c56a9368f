"""What others wrote acts on no terminal and no CI service, wherever kabuild prints it."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.testkit.cli import CliWorkspace, Ran

from .conftest import KERNEL, TASK

TITLE = "\x1b]0;title\x07"
NAMES = [f"a{TITLE}", "b\u202ec", "d\u2028e", "f\x9bg", "h\u200b", "##[group]", "::error::x", "[x]"]
HOSTILE = f"""\
::set-env name=PATH::/tmp
  ::add-mask::verdict
##vso[task.setvariable variable=x]1
##teamcity[buildStatus text='x']
{TITLE}\u202e\u2028::x\u0085::y\x9b31m [red]red[/red]
"""


def acts(text: str) -> bool:
    """Whether a terminal or a CI service would do something."""
    commands = any(mark in text for mark in ("##[", "##vso[", "##teamcity["))
    lines = any(line.lstrip().startswith("::") for line in text.splitlines())
    bad = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return commands or lines or any(unicodedata.category(c) in bad for c in text if c != "\n")


def quiet(ran: Ran) -> Ran:
    for text in (ran.out, ran.err):
        assert not acts(text), ascii(text)
    return ran


@pytest.mark.parametrize("name", NAMES)
def test_no_label_is_listed_that_cannot_be_asked_for(task: CliWorkspace, name: str) -> None:
    task.write(f"{name}/BUILD.toml", TASK)

    listed = quiet(task.run("query", "//..."))

    assert listed.code == 0
    assert listed.out.splitlines() == ["//double"] or "//double" in listed.out
    assert all(quiet(task.run("query", label)).code == 0 for label in listed.out.split()[:2])
    assert "is not a valid package name" in listed.err
    for words in (("query", f"//{name}"), ("test", f"//{name}"), ("query", f"//double:{name}")):
        assert quiet(task.run(*words)).code in {2, 7}


def test_what_a_candidate_makes_a_compiler_say_does_nothing(
    quick: CliWorkspace, tmp_path: Path
) -> None:
    lines = "\n".join(f"#error {line}" for line in HOSTILE.splitlines()[:4])
    acting = quick.write("acting.hip", f"{KERNEL}\n{HOSTILE}")
    assert quiet(quick.run("test", f"--solution={acting}", "//double", "--gates=compile")).code == 3
    bad = quick.write("bad.hip", f"{KERNEL}\n{lines}\n")
    flags = (f"--solution={bad}", "//double", "--gates=compile")
    summary, events, why = (tmp_path / name for name in ("summary.md", "events", "why"))

    files = (f"--summary={summary}", f"--events={events}", f"--explain={why}")
    ran = quiet(quick.run("test", *flags, *files, "--test_output=all"))
    quiet(quick.run("test", *flags))
    told = quiet(quick.run("test", *flags, "--json"))

    assert ran.code == told.code == 3
    assert "COMPILE_ERROR" in told.out
    details = [line for line in ran.out.splitlines() if "task.setvariable" in line]
    assert details, "it is told, and marked"
    assert all(line.startswith("  | ") for line in details)
    assert "::set-env" in told.json["targets"][0]["summary"], "as it is, for programs"
    for path in (events, why):
        assert not acts(path.read_text())
    assert "\x1b" not in summary.read_text()
    ElementTree.parse(quick.root / "out/test.xml")
    assert all(json.loads(line) for line in events.read_text().splitlines())


def test_a_declaration_that_names_hostile_things_does_nothing(task: CliWorkspace) -> None:
    strings = [json.dumps(text) for text in (TITLE, "\u202e", "a\n::error::x", "##vso[x]")]
    for text in strings:
        for line in (f"kernel = {text}", f"{text} = 1", f"entry = {text}", f"tags = [{text}]"):
            task.write("bad/BUILD.toml", f'[[hip2hip]]\nname = "bad"\n{line}\n')
            assert quiet(task.run("query", "//bad")).code != 0
        task.write("bad/BUILD.toml", f"[[hip2hip]]\nname = {text}\n")
        assert quiet(task.run("query", "//bad/...")).code != 0
