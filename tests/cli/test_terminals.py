"""What is written for terminals of several abilities, and for users who refuse colours."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest

from kabuild.cli.null_build import style
from kabuild.cli.streams import in_colour
from kabuild.cli.verify import _times
from kabuild.report.fetch_progress import LiveFetch, PlainFetch, make_fetch_progress
from kabuild.report.progress import LiveProgress, PlainProgress, make_progress
from kabuild.report.table import coloured, plain
from tests.testkit.clock import FakeClock

if TYPE_CHECKING:
    from kabuild.report.table import Style


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "colours", "redraws"),
    [
        ({"TERM": "xterm"}, coloured, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, coloured, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, plain, True),
        ({"TERM": "dumb"}, plain, False),
        ({}, plain, False),
    ],
)
def test_a_terminal_gets_what_it_can_show(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], colours: Style, redraws: bool
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "isatty", lambda _: True)

    assert style() is colours
    assert (in_colour("error", "red") == "error") is (colours is plain)
    progress = make_progress(FakeClock(), stream=Terminal())
    assert type(progress) is (LiveProgress if redraws else PlainProgress)
    assert type(make_fetch_progress(Terminal())) is (LiveFetch if redraws else PlainFetch)


def test_a_pipe_gets_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(os, "isatty", lambda _: False)

    assert style() is plain
    assert type(make_progress(FakeClock(), stream=io.StringIO())) is PlainProgress


def test_counts_are_words_where_there_are_some() -> None:
    assert [_times(count) for count in (1, 2, 3)] == ["once", "twice", "3 times"]
