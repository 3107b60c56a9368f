"""What is told of two texts that differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kabuild.report.why import text_difference

PADDING = {f"other{n}": "x" * 100 for n in range(30)}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"agent": {"seconds": 900}}, {"agent": {"seconds": 901}}, ["agent.seconds: 900 -> 901"]),
        ({"a": 1}, {"a": True, "b c": None}, ["a: 1 -> true", '["b c"]: absent -> null']),
        ({"l": [1, 2, 3]}, {"l": [1, 5, 3]}, ["l[1]: 2 -> 5"]),
        ({"l": [1, 2, 3]}, {"l": [1, 9, 2, 3]}, ["l[1]: absent -> 9"]),
        ({"l": [1, 2, 3]}, {"l": [3]}, ["l[0]: 1 -> absent", "l[1]: 2 -> absent"]),
        ({"a": {"b": 1}}, {"a": "x" * 100}, [f'a: {{"b": 1}} -> "{"x" * 79}...']),
    ],
)
def test_of_json_the_values_that_differ_are_told(old: Any, new: Any, told: list[str]) -> None:
    texts = [json.dumps({**PADDING, **value}) for value in (old, new)]
    assert text_difference("a.json", *texts) == [f"a.json: {line}" for line in told]


def test_however_much_differs_little_is_told() -> None:
    old, new = (json.dumps([number] * 1000) for number in (1, 2))
    lines = text_difference("a.json", old, new)
    assert lines[-2:] == ["a.json: [39]: 1 -> 2", "... 960 more lines"]
    assert max(map(len, text_difference("one", "x" * 10_000, "y" * 10_000))) == 403


@pytest.mark.parametrize(
    ("old", "new"),
    [("{", '{"a": 1}'), ("1", "2"), ('{"a":1}', '{"a": 1}'), ("[" * 50_000, "[" * 49_999)],
    ids=["none", "numbers", "formatting", "depth"],
)
def test_what_is_no_json_is_told_by_lines(old: str, new: str) -> None:
    assert text_difference("a", old, new)[-1].startswith("+")
