"""Which candidates are judged, and which verdicts are taken from the record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tasks.chosen import every
from tests.testkit.cli import CliWorkspace

from . import recorded as module
from .candidates import Candidate, cheats, declare
from .recorded import SHARE, Record

pytestmark = pytest.mark.untimed

CHEATS = [cheat for cheat in cheats("hip") if cheat.gates == ("compile", "correctness")][:6]
NAMES = [cheat.package for cheat in CHEATS]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CliWorkspace, Path]:
    """A workspace with some cheats, and a file that has a verdict of each."""
    monkeypatch.setenv("KABUILD_TEST_ACCEPT", "1")
    monkeypatch.setattr(module, "turn", lambda: "this commit")
    workspace, file = CliWorkspace.make(tmp_path), tmp_path / "verdicts.json"
    for cheat in CHEATS:
        declare(workspace, cheat)
    first = Record(workspace.root, NAMES, file=file)
    assert (first.due, first.known()) == (NAMES, {})
    said = {"verdict": "FAIL", "reason": "WRONG_RESULT", "summary": "y is wrong", "detail": "..."}
    first.accept({name: {"correctness": said} for name in NAMES})
    return workspace, file


def edited(workspace: CliWorkspace, cheat: Candidate) -> None:
    """Change what one cheat hands in."""
    (file,) = (workspace.root / cheat.package).glob("solutions/expert/*")
    file.write_text(file.read_text() + "// Another one.\n")


def test_what_did_not_change_is_recorded_but_for_a_share_in_turn(
    recorded: tuple[CliWorkspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, file = recorded
    record = Record(workspace.root, NAMES, file=file)

    assert every() or len(record.due) == -(-len(NAMES) // SHARE)
    assert {*record.due, *record.known()} == {*NAMES}
    assert not {*record.due} & {*record.known()}
    for gates in record.known().values():
        assert gates["correctness"]["reason"] == "WRONG_RESULT"
    known = module.keys_of(workspace.root, NAMES, module.UNTIMED)
    monkeypatch.setattr(module, "keys_of", lambda *_: known)
    turns: set[str] = set()
    for number in range(30):
        monkeypatch.setattr(module, "turn", lambda number=number: str(number))
        turns |= {*Record(workspace.root, NAMES, file=file).due}
    assert turns == {*NAMES}


def test_who_changed_is_judged(recorded: tuple[CliWorkspace, Path]) -> None:
    workspace, file = recorded
    before = {*Record(workspace.root, NAMES, file=file).due}
    edited(workspace, CHEATS[0])
    edited(workspace, CHEATS[1])

    assert {*Record(workspace.root, NAMES, file=file).due} == before | {NAMES[0], NAMES[1]}


@pytest.mark.parametrize("what", ["digest_of", "keys"])
def test_all_are_judged_when_the_judge_or_what_runs_it_changed(
    recorded: tuple[CliWorkspace, Path], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    workspace, file = recorded
    found: object = "other"
    if what == "keys":
        found = {f"//{name}:{name}.correctness": "other" for name in NAMES}
    monkeypatch.setattr(module, what, lambda *_: found)

    assert Record(workspace.root, NAMES, file=file).due == NAMES


def test_what_was_not_settled_is_judged_again(recorded: tuple[CliWorkspace, Path]) -> None:
    workspace, file = recorded
    edited(workspace, CHEATS[0])
    record = Record(workspace.root, NAMES, file=file)
    said = {"verdict": "PASS", "reason": "", "summary": "", "detail": ""}

    record.accept({name: {"correctness": said} for name in record.due if name != NAMES[0]})

    assert NAMES[0] not in json.loads(file.read_text())
    assert NAMES[0] in Record(workspace.root, NAMES, file=file).due


def test_only_who_is_timed_is_judged_when_the_timing_changed(tmp_path: Path) -> None:
    workspace = CliWorkspace.make(tmp_path)
    declare(workspace, CHEATS[0])
    before = {
        gates: module.keys_of(workspace.root, NAMES[:1], gates)
        for gates in (module.UNTIMED, module.TIMED)
    }

    build = workspace.root / NAMES[0] / "BUILD.toml"
    build.write_text(build.read_text().replace("max_processes = 3", "max_processes = 4"))
    after = {gates: module.keys_of(workspace.root, NAMES[:1], gates) for gates in before}

    assert after[module.UNTIMED] == before[module.UNTIMED]
    assert after[module.TIMED] != before[module.TIMED]


def test_what_runs_a_candidate_is_found_by_its_imports() -> None:
    assert "execution/outcome.py" in module.RUN_BY  # of cached.py
    assert "execution/devices" in module.RUN_BY
    assert not {"execution/fleet.py", "execution/remote_run.py"} & {*module.RUN_BY}


def test_the_whole_run_judges_all(
    recorded: tuple[CliWorkspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, file = recorded
    monkeypatch.setenv("KABUILD_TEST_SUITE", "all")

    assert Record(workspace.root, NAMES, file=file).due == NAMES


def test_a_run_records_nothing_unless_it_is_told_to(
    recorded: tuple[CliWorkspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, file = recorded
    before = json.loads(file.read_text())
    monkeypatch.delenv("KABUILD_TEST_ACCEPT")
    edited(workspace, CHEATS[0])
    said = {"verdict": "PASS", "reason": "", "summary": "", "detail": ""}

    record = Record(workspace.root, NAMES, file=file)
    record.accept({name: {"correctness": said} for name in record.due})

    assert json.loads(file.read_text()) == before
