"""Secrets are found again however they are written, and blotted out."""

from __future__ import annotations

import base64
import hashlib
import json
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.errors import InfraError, Reason
from kabuild.execution.secrets import LEAST_LENGTH, Secrets
from tests.testkit.actions import command

printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60)


def _pem() -> str:
    """What looks like a private key, as a shell's ``$(cat FILE)`` gives it."""
    blob = b"".join(hashlib.sha512(bytes([number])).digest() for number in range(6))
    lines = textwrap.wrap(base64.b64encode(blob).decode(), 70)
    name = "OPENSSH PRIVATE KEY"
    return "\n".join((f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"))


PEM = _pem()


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


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


@pytest.mark.parametrize(
    "encode",
    [
        str,
        _in_json,
        lambda line: json.dumps(_in_json(line), ensure_ascii=False)[1:-1],
        lambda line: quote(line, safe=""),
        quote_plus,
    ],
)
@pytest.mark.parametrize(
    "value", [PEM, PEM.replace("\n", "\r\n"), f'{{\n  "key": {json.dumps(PEM)}\n}}', 'é"\\' * 9]
)
def test_each_line_of_a_secret_is_blotted_out(value: str, encode: Callable[[str], str]) -> None:
    """A transcript has an entry a line, so that the value as a whole is nowhere in it."""
    secrets = Secrets({"KEY": value})
    lines = {line.strip() for line in value.replace("\\n", "\n").splitlines()}
    assert lines
    for line in (line for line in lines if len(line) >= LEAST_LENGTH):
        told = f'{{"text": "{encode(line)} {encode(line)}"}}'

        assert secrets.redact(told.encode()) == b'{"text": "[KEY] [KEY]"}'


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("value", [PEM, "sk-" + "0123456789abcdef" * 7])
def test_a_secret_in_base64_of_several_lines_is_blotted_out(
    value: str, encode: Callable[[bytes], bytes], width: int
) -> None:
    lines = textwrap.wrap(encode(f"{value}\n".encode()).decode(), width)

    said = Secrets({"KEY": value}).redact("\n".join(lines).encode()).decode().split("\n")

    assert said[:-1] == ["[KEY]"] * (len(lines) - 1)
    assert len(said[-1].removeprefix("[KEY]")) <= LEAST_LENGTH


def test_a_line_that_is_too_short_to_be_found_again_stays() -> None:
    secrets = Secrets({"KEY": f"{PEM}\nshort"})

    assert secrets.redact(b"short") == b"short"
    assert secrets.redact(f"{PEM}\nshort".encode()) == b"[KEY]"


def test_bytes_that_are_no_text_can_be_a_secret() -> None:
    value = b"correct\xffhorse"

    assert Secrets({"KEY": value.decode(errors="surrogateescape")}).redact(value) == b"[KEY]"


@pytest.mark.parametrize("value", [None, "", "x" * (LEAST_LENGTH - 1), "all\nlines\nshort"])
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
