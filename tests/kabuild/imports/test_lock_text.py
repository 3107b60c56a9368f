"""Facts are foreign: they cannot say more in a lock than the attributes of their own task."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kabuild.base.errors import LoadError, Reason
from kabuild.base.toml_text import quoted
from kabuild.imports.adapter import Listed, find_adapter
from kabuild.imports.facts import Facts, left_out, read_facts
from kabuild.imports.lock_text import lock_text, task_text
from kabuild.loading.import_lock import MOST_BYTES, LeftOut

ORIGIN = "0" * 64
TASK = Listed("level1/1_A", ("a.py",), ("easy",))
KNOWN = {"call", "configs", "scalars"}
STANZA = '1\n\n[[task]]\nname = "../../x"\nfiles = {}\n[task.attrs]\nconfigs'
HARD: list[Any] = ["\x7f\x00\x1b\n'\"\\", STANZA, {STANZA: 1, "": {"a.b": []}}, "\u2028é", 1e16]
HARD += [float("inf"), -0.0, 10**30, [[], {}], True, {"task": [{"name": "x"}]}]


def facts(**attrs: Any) -> bytes:
    return json.dumps({"origin": ORIGIN, "attrs": attrs}).encode()


@pytest.mark.parametrize("value", HARD)
def test_any_value_stays_a_value(value: Any) -> None:
    found = read_facts(facts(call=value), KNOWN)

    (table,) = tomllib.loads(task_text(TASK, {"a\n.py": "ab"}, found))["task"]

    assert (table["name"], table["kind"], table["tags"]) == ("level1/1_A", "call", ["easy"])
    assert table["files"] == {"a\n.py": "ab"}
    assert table["attrs"] == {"call": value}


def test_a_key_is_quoted_even_if_nothing_checked_it() -> None:
    text = task_text(TASK, {}, Facts(ORIGIN, {STANZA: 1}))

    assert quoted(STANZA) in text
    assert [task["attrs"] for task in tomllib.loads(text)["task"]] == [{STANZA: 1}]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (facts(**{STANZA: 1}), "a task has no attribute '1"),
        (facts(name="x"), "a task has no attribute 'name'"),
        (b'{"origin": "o", "attrs": {}}', "its origin is not a SHA-256"),
        (b'{"origin": "%s", "attrs": []}' % ORIGIN.encode(), "keys"),
        (b'{"attrs": {}}', "origin"),
        (b"[]", "get"),
        (b"{", "Expecting"),
        (b'{"left_out": 5}', "subscriptable"),
        (b'{"left_out": {"reason": "\\u001b[31m", "why": ""}}', "not in capital letters"),
        (b'{"left_out": {"reason": 5, "why": ""}}', "string"),
        (b'{"left_out": {"reason": "X_Y", "why": 5}}', "strip"),
        (facts(call="\ud800"), "surrogate"),
        (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", "nested too deeply"),
    ],
)
def test_facts_that_no_adapter_writes_are_refused(data: bytes, said: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError), match=said):
        read_facts(data, KNOWN)


def test_what_a_lock_cannot_hold_is_refused() -> None:
    for value in (None, {"a": None}, "\ud800"):
        with pytest.raises(ValueError, match=r"TOML|surrogates"):
            task_text(TASK, {}, Facts(ORIGIN, {"call": value}))


def test_the_sentence_of_a_failure_is_one_safe_line() -> None:
    why = "a\n::error::x\x1b[2J" + "y" * 5000
    found = read_facts(json.dumps({"left_out": {"reason": "NO_X", "why": why}}).encode(), KNOWN)

    assert isinstance(found, LeftOut)
    assert found.why.startswith(r"a ::error::x\u001b[2J")
    assert len(found.why) < 1100
    text = task_text(TASK, {}, found)
    assert tomllib.loads(text)["task"][0]["left_out"] == {"reason": "NO_X", "why": found.why}
    assert left_out("NO_X", " plain ") == LeftOut("NO_X", "plain")


def test_a_lock_is_at_most_as_large_as_what_is_read_of_one() -> None:
    adapter = find_adapter(Path("/nowhere"), "kernelbench")
    whole = lock_text(adapter, "", [""])
    room = MOST_BYTES - len(whole.encode())

    assert len(lock_text(adapter, "", ["#" * room]).encode()) == MOST_BYTES
    with pytest.raises(LoadError, match="the lock would have more than") as caught:
        lock_text(adapter, "", ["#" * (room - 1), "\u00e9"])
    assert caught.value.reason is Reason.TOO_LARGE
