"""TOML files and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.base.errors import LoadError, Position, Reason
from kabuild.loading.toml_file import read_toml


def failure(tmp_path: Path, data: bytes) -> LoadError:
    path = tmp_path / "f.toml"
    path.write_bytes(data)
    with pytest.raises(LoadError) as caught:
        read_toml(path, "shown.toml")
    assert caught.value.reason is Reason.TOML_SYNTAX
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "shown"),
    [
        ("a = 1\nb = = 2\n", 2, 5, "b = = 2\n    ^"),
        ("a = 1\n\n[[x]\n", 3, 4, "[[x]\n   ^"),
        ("a = 1\na = 2\n", 2, 6, "a = 2\n     ^"),
        ('a = "open', 1, 10, 'a = "open\n         ^'),
        ("a = [1,\n2\n\n", 2, 2, "2\n ^"),
        ("\ta = ?", 1, 6, " a = ?\n     ^"),
    ],
)
def test_syntax_errors_show_the_place(
    tmp_path: Path, text: str, line: int, column: int, shown: str
) -> None:
    error = failure(tmp_path, text.encode())
    assert error.position == Position("shown.toml", line, column)
    assert error.hint == shown
    assert str(error).startswith(f"shown.toml:{line}:{column}: not TOML: ")


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    error = failure(tmp_path, b'a = 1\nb = "\xff"\n')
    assert error.position == Position("shown.toml", 2)
    assert "0xff" in error.message


def test_values_that_are_nested_too_deeply(tmp_path: Path) -> None:
    error = failure(tmp_path, b"a = " + b"[" * 20000)
    assert "nested too deeply" in error.message


def test_an_integer_that_python_does_not_read(tmp_path: Path) -> None:
    error = failure(tmp_path, b"a = 1\nb = [1_" + b"0" * 5000 + b"]\n")
    assert error.position == Position("shown.toml", 2)
    assert error.message == "an integer has more than 4300 digits"


def test_windows_line_ends_count_as_one(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_bytes(b"a = 1\r\nb = 2\r\n")
    file = read_toml(path, "f.toml")
    assert file.values == {"a": 1, "b": 2}
    assert file.position("b") == Position("f.toml", 2)
