"""Checkouts are foreign: their files are read only where they are plain, small and inside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kabuild.loading.checkout import MOST_BYTES, Checkout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with a plain file, odd ones, and links; a secret lies beside it."""
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "bench"
    (root / "home/empty.py").mkdir(parents=True)
    (root / "home/plain.py").write_text("text")
    (root / "home/latin.py").write_bytes(b"\xff\xfe")
    os.mkfifo(root / "home/pipe.py")
    (root / "home/zero.py").symlink_to("/dev/zero")
    (root / "home/secret.py").symlink_to("../../secret")
    (root / "home/inner.py").symlink_to("plain.py")
    (root / "home/gone.py").symlink_to("nowhere.py")
    (root / "away").symlink_to("..")
    with (root / "home/large.py").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    return root


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("home/pipe.py", "is a device or a pipe"),
        ("home/zero.py", "lies outside"),
        ("home/secret.py", "lies outside"),
        ("away/secret", "lies outside"),
        ("../secret", "lies outside"),
        ("home/../../secret", "lies outside"),
        ("/etc/passwd", "lies outside"),
        ("home/large.py", "has more than"),
        ("home/gone.py", "No such file"),
        ("home/empty.py", "Is a directory"),
        ("", "lies outside"),
        ("a\0b", "lies outside"),
    ],
)
def test_what_is_no_plain_file_of_the_checkout_is_refused(root: Path, path: str, said: str) -> None:
    with pytest.raises(OSError, match=said) as caught:
        Checkout(root).read(path)

    assert caught.value.filename == path


def test_files_of_the_checkout_are_read_and_found(root: Path) -> None:
    checkout = Checkout(root)

    assert checkout.read("home/plain.py") == checkout.read("home/inner.py") == b"text"
    assert checkout.text("home/plain.py") == "text"
    assert checkout.has("home/pipe.py")
    assert not checkout.has("home/other.py")
    assert not checkout.has("../secret")
    assert checkout.find("p*.py", "home") == ["home/pipe.py", "home/plain.py"]
    assert checkout.find("*/p*.py") == checkout.find("p*.py", "home")
    assert checkout.find("*", "..") == checkout.find("*", "away") == []
    with pytest.raises(OSError, match="is not UTF-8"):
        checkout.text("home/latin.py")


def test_a_checkout_may_be_reached_by_a_link(root: Path) -> None:
    (link := root.parent / "link").symlink_to(root)

    assert Checkout(link).read("home/plain.py") == b"text"
    assert Checkout(link).find("home/pl*") == ["home/plain.py"]
