"""Text from others acts neither on terminals nor on CI services, and honest text stays as it is."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.printing import MARK, escaped, guarded, in_line, marked
from kabuild.cli.streams import Guarded

HONEST = "softmax.hip:7: error: 'x' is not declared\n    10⁻³ ± 0.4 µs  ✅ é 日本 [red] ::"
COMMANDS = ["::set-env name=x::y", " \t::error::x", "\u3000::add-mask::x", "::stop-commands::t"]
ANYWHERE = ["##[command]x", "a ##vso[task.setvariable]x", "b##teamcity[x]", "#####[group]"]
ACTING = [
    *("\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\r", "\x08", "\x00", "\x7f", "\x85", "\x0c"),
    *("\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\u2060", "\ufeff", "\u00ad", "\u3164"),
    *("\u2028", "\u2029", "\udc80", "\ud800", "\U000e0041", "\u180e"),
]


def acts(text: str) -> bool:
    return any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in text)


@given(st.text(st.characters(exclude_characters="\n")))
def test_nothing_that_acts_is_left(text: str) -> None:
    for shown in (escaped(text), guarded(text, terminal=False, at_start=True)):
        assert not acts(shown)
        assert len(shown.splitlines()) <= 1
    assert not any(command in escaped(text) for command in ("##[", "##vso["))


@pytest.mark.parametrize("bad", [*ACTING, *ANYWHERE])
def test_what_acts_is_shown_and_json_stays_json(bad: str) -> None:
    shown = escaped(f"a{bad}b")

    assert shown != f"a{bad}b"
    assert not acts(shown)
    assert escaped(shown) == shown
    text = json.dumps({"x": f"a{bad}b"}, ensure_ascii=False)
    assert json.loads(escaped(text)) == {"x": f"a{bad}b"}


def test_honest_text_stays_as_it_is() -> None:
    assert escaped(HONEST) == HONEST
    assert guarded(HONEST, terminal=False, at_start=True) == HONEST
    assert escaped("a\tb\r\nc") == "a       b\nc"
    assert in_line("a\nb") == "a b"
    assert marked("a\n\nb") == "| a\n|\n| b"
    assert marked("::x").startswith(MARK)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("before", ["", "first\n", "\n"])
def test_no_line_begins_with_a_command(command: str, before: str) -> None:
    raw = io.BytesIO()
    stream = Guarded(io.BufferedWriter(raw), encoding="utf-8")
    stream.write(before)
    for part in (command[:2], command[2:], "\n", "label: ", command, "\n"):
        stream.write(part)
    stream.flush()

    lines = raw.getvalue().decode().splitlines()

    assert not any(line.lstrip().startswith("::") for line in lines)
    assert lines[-1] == f"label: {escaped(command)}"


def test_a_terminal_gets_colours_and_nothing_else() -> None:
    text = "\x1b[32mPASS\x1b[0m\x1b[2K\x1b[1A\r\x1b[?25l"
    assert guarded(text, terminal=True, at_start=True) == text
    for bad in ("\x1b]0;t\x07", "\x1b]8;;http://x\x1b\\", "\x9b2J", "\u202e", "\x1bc", "\x1b[5n"):
        assert guarded(bad, terminal=True, at_start=True) != bad
    assert guarded(text, terminal=False, at_start=True) == escaped(text)


def test_no_character_of_format_is_forgotten() -> None:
    every = map(chr, [*range(0xD800), *range(0xE000, 0x110000)])
    kinds = {"Cc", "Cf", "Zl", "Zp"}
    acting = [c for c in every if unicodedata.category(c) in kinds and c not in "\n\t"]

    assert len(acting) > 200
    assert [char for char in acting if char in escaped(f"a{char}b")] == []
