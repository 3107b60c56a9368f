"""JSON of others is read without a traceback, whatever its form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kabuild.base.bounded_json import bounded_json, read_json

REPOSITORY = Path(__file__).parents[3]
OWN = {"base/bounded_json.py", "sandbox/protocol.py", "worker/shim.py"}
"""Files of kabuild that read JSON of their own making, or for all others."""


@pytest.mark.parametrize("read", [bounded_json, read_json])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "", "nothing", b"\xff"])
def test_what_cannot_be_read_is_a_value_error(read: object, text: str | bytes) -> None:
    assert callable(read)
    with pytest.raises(ValueError, match=r"."):
        read(text)


def test_numbers_of_any_kind_are_read_where_the_form_is_checked_later() -> None:
    assert read_json(b'{"low": [1, 2.5, Infinity]}') == {"low": [1, 2.5, float("inf")]}


def test_no_other_file_reads_json_by_itself() -> None:
    package = REPOSITORY / "kabuild"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\bjson\.loads?\(", path.read_text())
    }

    assert found == OWN
