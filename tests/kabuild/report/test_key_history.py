"""Which earlier key an action is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from kabuild.model.result import ActionResult, Outcome, Settled
from kabuild.report import key_history
from kabuild.report.key_history import KeyHistory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TASK = Label("tasks/softmax", "softmax")


def of(out: Path, agent: str) -> KeyHistory:
    return KeyHistory(out, Options(Platform("cpu"), Label("agents", agent)))


def made(trial: int, key: bytes) -> Settled:
    label = TASK.sub("agent").in_trial(trial)
    return Settled(label, Outcome.DONE, Digest.of(key), ActionResult(0))


def test_each_agent_has_its_own_and_each_of_its_trials(tmp_path: Path) -> None:
    of(tmp_path, "mine").record([made(1, b"one"), made(2, b"two")])
    of(tmp_path, "mine").record([made(1, b"three")])
    of(tmp_path, "other").record([made(1, b"four")])

    known = [of(tmp_path, "mine").own(made(trial, b"").label) for trial in (1, 2, 3)]

    assert known == [Digest.of(b"three"), Digest.of(b"two"), None]


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    of(tmp_path, "mine").record([made(1, b"one")])
    (path,) = (tmp_path / ".keys").iterdir()
    before = path.stat().st_ino
    of(tmp_path, "mine").record([made(1, b"one")])

    assert path.stat().st_ino == before


def test_the_oldest_histories_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_history, "_MOST", 2)
    for agent in ("one", "two", "three"):
        of(tmp_path, agent).record([made(1, b"key")])

    assert len([*(tmp_path / ".keys").iterdir()]) == 2
    assert of(tmp_path, "three").own(made(1, b"").label)


def test_a_damaged_history_is_none(tmp_path: Path) -> None:
    of(tmp_path, "mine").record([made(1, b"one")])
    (path,) = (tmp_path / ".keys").iterdir()
    path.write_bytes(b"\xff //tasks/softmax:softmax.agent x\n")

    assert of(tmp_path, "mine").own(made(1, b"").label) is None
