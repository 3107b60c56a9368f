"""What shells are given to complete, asked as they ask."""

from __future__ import annotations

import pytest

from tests.cli.conftest import declare
from tests.testkit.cli import CliWorkspace


def completed(workspace: CliWorkspace, *words: str) -> list[str]:
    """What bash would offer for the last word."""
    asked = {
        "_KABUILD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("kabuild", *words)),
        "COMP_CWORD": str(len(words)),
    }
    ran = CliWorkspace(workspace.root, workspace.store, {**workspace.env, **asked}).start()
    assert ran.code == 0, ran.err
    assert not ran.err
    return [line.removeprefix("plain,") for line in ran.out.splitlines() if line]


@pytest.fixture
def two(workspace: CliWorkspace) -> CliWorkspace:
    """A workspace with two tasks, an alias of an agent and a config."""
    for package in ("kernels/double", "kernels/doubled"):
        declare(workspace, package)
    with (workspace.root / "WORKSPACE.toml").open("a") as file:
        file.write('[agents]\nmine = "//agents:mine"\n[config.quick]\ngates = ["compile"]\n')
    (workspace.root / "agents").mkdir()
    declared = '[[agent]]\nname = "first"\ncommand = ["{python}"]\n'
    (workspace.root / "agents/BUILD.toml").write_text(declared)
    return workspace


GATES = ["double.compile", "double.correctness", "double.counters"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("test", "//k"), ["//kernels/...", "//kernels/double", "//kernels/doubled"]),
        (("test", "--", "-//kernels/doubled"), ["-//kernels/doubled"]),
        (("query", "deps(//kernels/doubled"), ["deps(//kernels/doubled"]),
        (
            ("build", "//kernels/double:double.co"),
            GATES,
        ),
        (("watch", "--agent", "mi"), ["mine", "mini_swe"]),
        (("test", "--config", ""), ["quick"]),
        (("watch", "--agent", "//a"), ["//agents:first"]),
        (("validate", "//nothing"), []),
        (("ini",), ["init"]),
    ],
)
def test_names_of_the_workspace_are_completed(
    two: CliWorkspace, words: tuple[str, ...], offered: list[str]
) -> None:
    found = completed(two, *words)

    assert [name.removeprefix("//kernels/double:") for name in found] == offered


@pytest.mark.parametrize(
    ("pieces", "offered"),
    [
        (
            ("test", "//kernels/double", ":", "double.co"),
            GATES,
        ),
        (("test", "--agent", "=", "mi"), ["mine", "mini_swe"]),
        (("test", "--agent", "=", "//agents", ":"), ["first"]),
        (("test", "--agent", "=", "//a"), ["//agents:first"]),
    ],
)
def test_words_that_bash_breaks_at_colons_and_equals_signs_are_completed(
    two: CliWorkspace, pieces: tuple[str, ...], offered: list[str]
) -> None:
    assert completed(two, *pieces) == offered


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("--agent=mi", ["--agent=mine", "--agent=mini_swe"]),
        ("--solution=ker", ["--solution=kernels"]),
        ("//kernels/double:double.comp", ["//kernels/double:double.compile"]),
    ],
)
def test_fish_is_offered_whole_words(two: CliWorkspace, word: str, offered: list[str]) -> None:
    asked = {
        "_KABUILD_COMPLETE": "fish_complete",
        "COMP_WORDS": f"kabuild test {word}",
        "COMP_CWORD": word,
    }
    ran = CliWorkspace(two.root, two.store, {**two.env, **asked}).start()

    assert ran.err == ""
    assert ran.out.split() == [f"plain,{name}" for name in offered]


def test_zsh_is_offered_whole_words_and_keeps_a_flag_before_a_file(two: CliWorkspace) -> None:
    asked = {
        "_KABUILD_COMPLETE": "zsh_complete",
        "COMP_WORDS": "kabuild test --agent=mi",
        "COMP_CWORD": "2",
    }
    ran = CliWorkspace(two.root, two.store, {**two.env, **asked}).start()
    assert ran.out.split() == ["plain", "--agent=mine", "_", "plain", "--agent=mini_swe", "_"]

    asked = {"_KABUILD_COMPLETE": "zsh_source"}
    script = CliWorkspace(two.root, two.store, {**two.env, **asked}).start().out
    body = script.partition("_kabuild_completion() {\n")[2]
    assert body.startswith("    compset -P 1 '-*='\n")


def test_outside_of_a_workspace_nothing_is_offered_and_nothing_said(two: CliWorkspace) -> None:
    (two.root / "WORKSPACE.toml").unlink()
    assert completed(two, "test", "//k") == []

    (two.root / "WORKSPACE.toml").write_text("name = [")
    assert completed(two, "test", "--agent", "m") == []


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"COMP_WORDS": "kabuild test"},
        {"COMP_CWORD": "1"},
        {"COMP_WORDS": "kabuild test", "COMP_CWORD": "one"},
        {"COMP_WORDS": "kabuild test", "COMP_CWORD": "9" * 5000},
        {"COMP_WORDS": "kabuild test", "COMP_CWORD": "-1"},
    ],
)
def test_completion_without_a_command_line_is_one_error(
    workspace: CliWorkspace, asked: dict[str, str]
) -> None:
    environment = {**workspace.env, "_KABUILD_COMPLETE": "bash_complete", **asked}
    ran = CliWorkspace(workspace.root, workspace.store, environment).start("test", "//...")

    assert ran.code == 2
    assert ran.err.splitlines() == [
        "error: _KABUILD_COMPLETE=bash_complete without the shell's COMP_WORDS and COMP_CWORD",
        "  unset _KABUILD_COMPLETE: only a shell sets it, to complete a command line",
    ]


def test_completion_runs_no_code_of_the_workspace(two: CliWorkspace) -> None:
    ran = two.root / "ran"
    rule = two.root / "rules/foreign/rule.py"
    rule.parent.mkdir(parents=True)
    rule.write_text(f"open({str(ran)!r}, 'w')\n")
    for package in ("agents", "kernels/foreign"):
        (two.root / package).mkdir(exist_ok=True)
        with (two.root / package / "BUILD.toml").open("a") as file:
            file.write('[[foreign]]\nname = "foreign"\n')

    offered = [completed(two, "test", "//kernels/f"), completed(two, "test", "//kernels/foreign:")]
    completed(two, "watch", "--agent", "")

    assert offered == [["//kernels/foreign"], []]
    assert not ran.exists()
