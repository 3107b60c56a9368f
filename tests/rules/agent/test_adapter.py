"""The interface of adapters, and the one that serves any command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import adapter
import pytest
from adapter import Captured, State, Usage
from adapters import plain


def _captured(stdout: bytes = b"", stderr: bytes = b"", state: State = State.FINISHED) -> Captured:
    return Captured(stdout, stderr, 0, state, 1.0, Path("/home"), Path("/workspace"))


def test_an_adapter_is_found_by_name_and_needs_only_to_read() -> None:
    found = adapter.load("plain")

    assert found.read(_captured(b"hello\n")).transcript == ({"role": "assistant", "text": "hello"},)
    assert found.meter().feed(b"hello") is None
    with pytest.raises(ModuleNotFoundError):
        adapter.load("of_nobody")


def test_the_last_usage_line_counts() -> None:
    lines = [{"usage": {"turns": 1}}, {"usage": {"turns": 2, "input_tokens": 5, "dollars": 0.5}}]
    stdout = b"\n".join(json.dumps(line).encode() for line in lines)

    assert plain.read(_captured(stdout)).usage == Usage(turns=2, input_tokens=5, dollars=0.5)


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"{}", b'{"usage": 3}', b'{"usage": []}', b"{" * 100000, b"\xff{", b'"usage"'],
)
def test_a_line_that_reports_nothing_is_none(line: bytes) -> None:
    assert plain.meter().feed(line) is None


@pytest.mark.parametrize("value", ["1e9", True, -1, None, [], {}])
def test_a_figure_that_is_no_number_is_unknown(value: object) -> None:
    usage = plain.meter().feed(json.dumps({"usage": {"turns": value}}).encode())

    assert usage == Usage()


def test_a_failure_is_explained_by_the_last_line_of_stderr() -> None:
    report = plain.read(_captured(stderr=b"one\ntwo\n", state=State.FAILED))

    assert (report.state, report.message) == (State.FAILED, "two")


def test_tokens_are_those_that_are_known() -> None:
    assert Usage().tokens is None
    assert Usage(input_tokens=2).tokens == 2
    assert Usage(input_tokens=2, output_tokens=3, cached_tokens=1).tokens == 5


def test_what_an_agent_left_is_read_with_care(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abcdef")
    (tmp_path / "link").symlink_to("text")
    os.mkfifo(tmp_path / "fifo")

    assert adapter.read_text(tmp_path / "text", 3) == "abc"
    assert adapter.read_text(tmp_path / "link") == ""
    assert adapter.read_text(tmp_path / "fifo") == ""
    assert adapter.read_text(tmp_path / "none") == ""
