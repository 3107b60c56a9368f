"""Agents at work through the real program, and all that they may do wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.cli import CliWorkspace, Ran

from .agents import rogues
from .conftest import KERNEL, declare

SECRET = "correct-horse-battery"
DECLARED = """\
[[agent]]
name    = "ending"
command = ["{python}", "{files}/rogues.py", "ending", "{trial}"]
files   = ["rogues.py"]
secrets = ["ROGUES_API_KEY"]
seconds = 100

[[agent]]
name    = "endless"
command = ["{python}", "{files}/rogues.py", "endless", "{trial}"]
files   = ["rogues.py"]
seconds = 3
memory  = 256
"""


@dataclass(frozen=True)
class Session:
    """What one session left."""

    directory: Path

    @property
    def facts(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.directory / "agent.json").read_text())
        return value

    @property
    def kernel(self) -> str:
        return (self.directory / "solution" / "double.hip").read_text()

    @property
    def transcript(self) -> list[dict[str, Any]]:
        return [*map(json.loads, (self.directory / "transcript.jsonl").read_text().splitlines())]

    @property
    def said(self) -> list[str]:
        return [entry["text"] for entry in self.transcript if entry["role"] == "assistant"]

    @property
    def checks(self) -> list[dict[str, Any]]:
        return [*map(json.loads, (self.directory / "calls.jsonl").read_text().splitlines())]


@dataclass(frozen=True)
class Rogues:
    """A workspace in which every rogue had its trial."""

    workspace: CliWorkspace
    ran: dict[str, Ran]

    def session(self, name: str) -> Session:
        group = rogues.ENDING if name in _names(rogues.ENDING) else rogues.ENDLESS
        number = _names(group).index(name)
        suffix = f"#{number + 1}" if number else ""
        agent = "ending" if group is rogues.ENDING else "endless"
        return Session(self.workspace.root / "kept" / agent / f"double.agent{suffix}")


def _names(group: tuple[Any, ...]) -> list[str]:
    return [function.__name__ for function in group]


@pytest.fixture(scope="module")
def had(module_workspace: CliWorkspace) -> Rogues:
    workspace = CliWorkspace(module_workspace.root, module_workspace.store, {rogues.SECRET: SECRET})
    declare(workspace, "double")
    workspace.write("agents/BUILD.toml", DECLARED)
    workspace.write("agents/rogues.py", Path(rogues.__file__).read_text())
    ran = {}
    for agent, group in (("ending", rogues.ENDING), ("endless", rogues.ENDLESS)):
        flags = (f"--agent=//agents:{agent}", f"--trials={len(group)}", "-j2")
        ran[agent] = workspace.run("build", "//double:double.agent", *flags)
        (workspace.root / "kept").mkdir(exist_ok=True)
        (workspace.root / "out/double").rename(workspace.root / "kept" / agent)
    return Rogues(workspace, ran)


def test_whatever_an_agent_does_is_a_result(had: Rogues) -> None:
    assert [ran.code for ran in had.ran.values()] == [0, 0], [r.err for r in had.ran.values()]


@pytest.mark.parametrize(
    ("name", "state", "exit_code", "message"),
    [
        ("honest", "finished", 0, ""),
        ("returns_nothing", "finished", 0, ""),
        ("crashes", "failed", 134, "it ended with exit code 134 (SIGABRT)"),
        ("complains", "failed", 1, "something went wrong"),
        ("deletes_its_workspace", "finished", 0, ""),
        ("edits_what_is_given", "finished", 0, ""),
        ("writes_gigabytes", "finished", 0, ""),
        ("leaves_a_daemon", "finished", 0, ""),
        ("floods_the_checks", "finished", 0, ""),
        ("prints_for_ever", "timed_out", None, "it was stopped after 3 s"),
        ("ignores_every_signal", "timed_out", None, "it was stopped after 3 s"),
        ("eats_memory", "failed", None, "it was stopped at its limit of memory"),
    ],
)
def test_the_end_of_an_agent_is_told(
    had: Rogues, name: str, state: str, exit_code: int | None, message: str
) -> None:
    facts = had.session(name).facts

    assert (facts["state"], facts["exit_code"], facts["message"]) == (state, exit_code, message)


def test_each_build_says_that_an_agent_failed(had: Rogues) -> None:
    """Also where nothing has changed: the untouched kernel would look like its work."""
    workspace = had.workspace
    workspace.write(
        "fails/BUILD.toml", '[[agent]]\nname = "fails"\ncommand = ["{python}", "-c", "boom"]\n'
    )
    for cached in (False, True):
        ran = workspace.run("test", "//double", "--agent=//fails", "--gates=compile")

        assert (ran.code, "PASS" in ran.out) == (0, True), ran.err
        assert "agent: failed: NameError: name 'boom' is not defined" in ran.out
        assert ("0 executed" in ran.out) == cached, ran.out
        (line,) = [one for one in ran.out.splitlines() if "that did not finish said: " in one]
        transcript = workspace.root / line.partition("said: ")[2]
        assert "Traceback" in transcript.read_text()


def test_what_an_agent_complains_of_is_kept(had: Rogues) -> None:
    told = [e["text"] for e in had.session("complains").transcript if e["role"] == "stderr"]

    assert told == ["something went wrong\n"]


def test_a_fork_bomb_is_stopped(had: Rogues) -> None:
    facts = had.session("forks_for_ever").facts

    assert facts["limit"] in {"processes", "wall"}
    assert facts["solution"]["changed"]


@pytest.mark.parametrize(
    "name",
    [
        *("honest", "crashes", "complains", "edits_what_is_given", "writes_gigabytes"),
        *("leaves_a_daemon", "prints_for_ever", "forks_for_ever", "ignores_every_signal"),
        "eats_memory",
    ],
)
def test_the_last_state_of_the_kernel_is_handed_in(had: Rogues, name: str) -> None:
    assert had.session(name).kernel == rogues.EDITED + KERNEL


def test_who_changes_nothing_hands_in_the_kernel(had: Rogues) -> None:
    session = had.session("returns_nothing")

    assert session.kernel == KERNEL
    assert not session.facts["solution"]["changed"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("deletes_its_workspace", "it is gone"),
        ("hands_in_a_link", "it is a symbolic link"),
        ("hands_in_bytes", "it is binary: byte 1 is not UTF-8"),
        ("hands_in_too_much", "it has 1800000 bytes, at most 1048576 are allowed"),
    ],
)
def test_what_is_no_kernel_is_refused_with_a_reason(had: Rogues, name: str, why: str) -> None:
    session = had.session(name)

    assert session.facts["solution"]["refused"] == {"double.hip": why}
    assert session.kernel == f"// double.hip was not handed in: {why}\n"


def test_all_but_the_kernel_is_left_behind_and_listed(had: Rogues) -> None:
    session = had.session("writes_gigabytes")

    dropped = session.facts["solution"]["dropped"]
    assert dropped[0] == "large-0"
    assert [path.name for path in (session.directory / "solution").iterdir()] == ["double.hip"]


def test_endless_output_is_cut_in_the_middle(had: Rogues) -> None:
    size = (had.session("prints_for_ever").directory / "transcript.jsonl").stat().st_size

    assert size < 20 << 20


def test_checks_survive_what_is_none_and_are_recorded(had: Rogues) -> None:
    session = had.session("floods_the_checks")

    assert session.said[0].startswith(
        "refused: this cannot be checked: unknown gate 'unseen'; gates"
    )
    assert session.said[1].startswith(
        "refused: this cannot be checked: unknown config 'no such config'"
    )
    assert session.said[-2].startswith("compile: PASS")
    assert session.said[-1].startswith("smoke: PASS")
    *refused, broken, last = session.checks
    assert [(v["verdict"], v["reason"]) for v in broken["verdicts"]] == [
        ("FAIL", "COMPILE_ERROR"),
        ("SKIPPED", "EARLIER_GATE"),
    ]
    assert all("this cannot be checked" in check["error"] for check in refused)
    assert [verdict["verdict"] for verdict in last["verdicts"]] == ["PASS", "PASS"]
    told = [entry for entry in session.transcript if entry["role"] == "check"]
    assert [entry["text"] for entry in told[-1:]] == ["compile: PASS; smoke: PASS"]
    assert len(told) == len(session.checks) == session.facts["checks"]


def test_a_secret_is_in_nothing_that_is_kept(had: Rogues) -> None:
    """Neither in the store, nor in the workspace, nor in what was printed; its name is."""
    session = had.session("tells_its_secret")
    assert session.kernel.startswith(f"// [{rogues.SECRET}]\n")
    assert f"[{rogues.SECRET}]" in session.said
    assert session.facts["message"] == f"[{rogues.SECRET}]"

    roots = (had.workspace.root, had.workspace.store)
    files = [path for root in roots for path in root.rglob("*") if path.is_file()]
    assert len(files) > 100
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
        assert SECRET not in path.name
    for ran in had.ran.values():
        assert SECRET not in ran.out + ran.err
