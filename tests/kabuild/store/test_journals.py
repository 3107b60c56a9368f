"""Journals outlive interrupted runs, serve one run at a time, and do not pile up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kabuild.store import journals
from kabuild.store.journals import KEPT_SECONDS, Journals

KEY, OTHER = "a" * 64, "b" * 64


def test_what_was_written_is_there_the_next_time(tmp_path: Path) -> None:
    kept = Journals(tmp_path / "journals")
    with kept.lend(KEY) as journal:
        assert journal is not None
        journal.write_text("found out\n")

    with kept.lend(KEY) as again, kept.lend(OTHER) as other:
        assert again is not None
        assert other is not None
        assert again.read_text() == "found out\n"
        assert other.read_text() == ""


def test_two_runs_never_share_a_journal(tmp_path: Path) -> None:
    with Journals(tmp_path).lend(KEY) as first, Journals(tmp_path).lend(KEY) as second:
        assert first is not None
        assert second is None


def test_what_nobody_used_for_long_goes(tmp_path: Path) -> None:
    kept = Journals(tmp_path)
    for key in (KEY, OTHER):
        with kept.lend(key):
            pass
    used = (tmp_path / OTHER).stat().st_mtime - KEPT_SECONDS - 60
    os.utime(tmp_path / OTHER, (used, used))

    with kept.lend(KEY):
        assert [path.name for path in tmp_path.iterdir()] == [KEY]


def test_one_that_grew_too_large_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "MOST_BYTES", 10)
    with Journals(tmp_path).lend(KEY) as journal:
        assert journal is not None
        journal.write_text("x" * 11)

    assert (tmp_path / KEY).read_text() == ""
