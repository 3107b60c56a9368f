"""Secrets are found again however they are written, and blotted out."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.errors import InfraError, Reason
from kabuild.execution.secrets import LEAST_LENGTH, Secrets
from tests.testkit.actions import command

printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60)


@given(printable, st.binary(max_size=20), st.binary(max_size=20))
def test_no_form_of_a_secret_remains(value: str, before: bytes, after: bytes) -> None:
    secrets = Secrets({"KEY": value})
    forms = [
        value.encode(),
        json.dumps({"a": value}).encode(),
        quote(value, safe="").encode(),
    ]
    for form in forms:
        assert value.encode() not in secrets.redact(before + form + after)


@given(printable, st.binary(max_size=20), st.binary(max_size=20))
def test_base64_is_seen_through_whatever_is_encoded_with_it(
    value: str, before: bytes, after: bytes
) -> None:
    encoded = base64.b64encode(before + value.encode() + after)

    assert b"[KEY]" in Secrets({"KEY": value}).redact(encoded)


def test_what_holds_no_secret_stays_as_it_is(tmp_path: Path) -> None:
    secrets = Secrets({"KEY": "correct-horse"})
    (tmp_path / "clean").write_bytes(b"\0 battery staple")
    (tmp_path / "dirty").write_bytes(b"\0 correct-horse battery")

    secrets.redact_file(tmp_path / "clean")
    secrets.redact_file(tmp_path / "dirty")

    assert (tmp_path / "clean").read_bytes() == b"\0 battery staple"
    assert (tmp_path / "dirty").read_bytes() == b"\0 [KEY] battery"


def test_of_two_secrets_the_longer_is_blotted_out_first() -> None:
    secrets = Secrets({"SHORT": "abcdefgh", "LONG": "abcdefgh-ijkl"})

    assert secrets.redact(b"abcdefgh-ijkl abcdefgh") == b"[LONG] [SHORT]"


@pytest.mark.parametrize("value", [None, "", "x" * (LEAST_LENGTH - 1)])
def test_a_secret_that_is_missing_or_too_short_stops_the_action(value: str | None) -> None:
    action = replace(command("a", "true"), secrets=("API_KEY",))
    environment = {} if value is None else {"API_KEY": value}

    with pytest.raises(InfraError) as raised:
        Secrets.of(action, environment)

    assert raised.value.reason is Reason.NO_SECRET
    assert "API_KEY" in raised.value.message


def test_only_what_an_action_names_is_taken() -> None:
    action = replace(command("a", "true"), secrets=("API_KEY",))

    assert Secrets.of(action, {"API_KEY": "correct-horse", "OTHER": "x"}).values == {
        "API_KEY": "correct-horse"
    }
