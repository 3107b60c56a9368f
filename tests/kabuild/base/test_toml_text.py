"""What is written into TOML is read as it was."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.toml_text import quoted


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_as_it_was(text: str) -> None:
    assert tomllib.loads(f"name = {quoted(text)}\n") == {"name": text}


@pytest.mark.parametrize("text", ["a\\x41", "\\", "\\\\x", "a\x7fb", "\U0001f600", 'q"', "\n\0"])
def test_what_trips_other_writers(text: str) -> None:
    assert tomllib.loads(f"name = {quoted(text)}\n") == {"name": text}


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        quoted("a\udcff")
