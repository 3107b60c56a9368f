"""An event that is not as it should be costs itself, and nothing of the rest of a run."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import adapter
import pytest
from adapter import Captured, Report, Sieve, State, Usage, text_of
from adapters import mini_swe

from .test_adapters import CLAUDE, CODEX, COMPLETED, CURSOR, RESULT

STREAMS: dict[str, tuple[dict[str, Any], ...]] = {
    "claude_code": (*CLAUDE, RESULT),
    "codex": (*CODEX, COMPLETED),
    "cursor": (*CURSOR, {"type": "result", "is_error": False, "usage": {"inputTokens": 1}}),
    "mini_swe": (
        {"role": "user", "content": "task"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I look."}],
            "tool_calls": [{"function": {"name": "bash", "arguments": "ls"}}],
            "extra": {"response": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}},
        },
        {"role": "tool", "content": "k.hip"},
        {"role": "exit", "content": "done"},
    ),
}
ODD: tuple[Any, ...] = (None, True, 3, float("inf"), 10**400, "odd", [], [[]], {}, {"odd": []})


def _read(name: str, events: tuple[Any, ...], home: Path) -> Report:
    stdout = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    info = {"exit_status": "Submitted", "model_stats": {"api_calls": 1}}
    trajectory = {"info": info, "messages": events}
    (home / mini_swe.TRAJECTORY).write_text(json.dumps(trajectory))
    return adapter.load(name).read(Captured(stdout, b"", 0, State.FINISHED, 1.0, home, home))


def _altered(value: Any) -> Iterator[Any]:
    """``value`` with each part of it in turn missing, or of each odd kind."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        missing = copy.copy(value)
        del missing[key]
        yield missing
        others = _altered(value[key]) if isinstance(value[key], dict | list) else ()
        for other in (*ODD, *others):
            changed = copy.copy(value)
            changed[key] = other
            yield changed


@pytest.mark.parametrize("name", STREAMS)
def test_whatever_one_event_lacks_the_others_are_kept(name: str, tmp_path: Path) -> None:
    events = STREAMS[name]
    skipped = 0
    for index, event in enumerate(events):
        before = _read(name, events[:index], tmp_path).transcript
        after = _read(name, events[index + 1 :], tmp_path).transcript
        for odd in _altered(event):
            report = _read(name, (*events[:index], odd, *events[index + 1 :]), tmp_path)
            assert report.transcript[: len(before)] == before, odd
            assert report.transcript[len(report.transcript) - len(after) :] == after, odd
            assert all(isinstance(entry["text"], str) for entry in report.transcript), odd
            assert report.skipped <= 1, odd
            json.dumps(asdict(report.usage.plausible()), allow_nan=False)
            skipped += report.skipped
    assert skipped > 20
    assert _read(name, events, tmp_path).skipped == 0


@pytest.mark.parametrize("name", ["claude_code", "codex"])
def test_a_meter_counts_on_after_an_odd_event(name: str) -> None:
    """So that no odd event ends a budget."""
    lines = [json.dumps(event).encode() for event in STREAMS[name]]
    found = adapter.load(name)
    sound = found.meter()
    expected = [sound.feed(line) for line in lines]
    refused = 0
    for odd in (odd for event in STREAMS[name] for odd in _altered(event)):
        meter = found.meter()
        try:
            meter.feed(json.dumps(odd).encode())
        except adapter.UNREADABLE:
            refused += 1
            assert [meter.feed(line) for line in lines] == expected, odd
    assert refused > 2


def test_a_sieve_counts_each_odd_event_once() -> None:
    sieve = Sieve()
    events = [{"a": "1"}, {"b": "2"}, {"a": "x"}, {"a": "3"}]

    assert sieve.each(events, lambda event: [int(event["a"])]) == [1, 3]
    assert sieve.one(events[1], lambda event: event["a"], "none") == "none"
    assert sieve.skipped == 2


def test_a_sieve_hides_no_mistake_of_the_machine() -> None:
    def fail(_: Any) -> list[int]:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        Sieve().each([{}], fail)


def test_usage_that_is_no_number_is_unknown() -> None:
    odd: tuple[Any, ...] = ("12", -1, 10**400, float("nan"), float("inf"))

    assert Usage(*odd).plausible() == Usage()
    assert Usage(1, 2, 3, 0, 0.5).plausible() == Usage(1, 2, 3, 0, 0.5)


def test_the_text_of_a_message_may_be_in_parts() -> None:
    assert text_of([{"text": "a"}, {"type": "image"}, {"text": "b"}]) == "a\n\nb"
    assert text_of(None) == ""
    with pytest.raises(TypeError):
        adapter.entry("user", 3)
