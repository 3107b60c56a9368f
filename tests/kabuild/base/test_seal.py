"""A seal holds for one file, one name and one key; a key that is lost is no error."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.seal import KEY_FILE, Trust, UnsealedError, data_home, key_problem, user_seal
from tests.testkit.seal import OTHER_SEAL, SEAL

_RACERS = 8


def _key_of(home: str) -> bytes:
    return user_seal({"HOME": home}).key


@given(body=st.binary(max_size=80), at=st.integers(0, 200), byte=st.integers(1, 255))
def test_any_changed_byte_breaks_the_seal(body: bytes, at: int, byte: int) -> None:
    whole = SEAL.wrap("kind", "name", body)
    at %= len(whole)
    changed = whole[:at] + bytes([whole[at] ^ byte]) + whole[at + 1 :]

    assert SEAL.unwrap("kind", "name", whole) == body
    if changed.lower() != whole:  # the seal is written in hex, of either case
        with pytest.raises(UnsealedError):
            SEAL.unwrap("kind", "name", changed)


@pytest.mark.parametrize(
    ("kind", "name", "trust"),
    [
        ("kind", "name", Trust.SEALED),
        ("kind", "other", Trust.FALSE),
        ("other", "name", Trust.FALSE),
        ("kin", "d\0name", Trust.FALSE),
    ],
)
def test_a_seal_is_of_one_kind_and_name(kind: str, name: str, trust: Trust) -> None:
    assert SEAL.check(kind, name, b"body", SEAL.of("kind", "name", b"body")) is trust


def test_the_seal_of_another_key_is_told_from_a_false_one() -> None:
    assert SEAL.check("k", "n", b"x", OTHER_SEAL.of("k", "n", b"x")) is Trust.FOREIGN
    assert SEAL.check("k", "n", b"x", b"") is Trust.UNSEALED
    assert SEAL.key not in SEAL.of("k", "n", b"x")
    assert repr(SEAL.key) not in repr(SEAL)


def test_the_key_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    with ProcessPoolExecutor(_RACERS) as racers:
        keys = {*racers.map(_key_of, [str(tmp_path)] * _RACERS)}

    path = data_home({"HOME": str(tmp_path)}) / KEY_FILE
    assert keys == {path.read_bytes()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.parent == tmp_path / ".local/share/kabuild"
    assert data_home({"XDG_DATA_HOME": "/x", "HOME": "/h"}) == Path("/x/kabuild")


def test_a_key_that_is_lost_is_replaced(tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path)}
    before = user_seal(env)
    (tmp_path / "kabuild" / KEY_FILE).unlink()

    after = user_seal(env)

    assert not after.problem
    assert after.key != before.key
    assert after == user_seal(env)


@pytest.mark.parametrize(
    ("spoilt", "mode", "problem"),
    [
        (b"x" * 31, 0o600, "it has 31 bytes, and a key has 32"),
        (b"x" * 32 + b"\n", 0o600, "it has 33 bytes, and a key has 32"),
        (b"", 0o600, "it has 0 bytes"),
        (b"x" * 32, 0o644, "others can read it; make it yours: chmod 600 "),
        (b"x" * 32, 0o660, "others can read it"),
    ],
)
def test_a_file_that_is_no_key_of_one_user_is_neither_used_nor_replaced(
    tmp_path: Path, spoilt: bytes, mode: int, problem: str
) -> None:
    """It may be a key that was copied wrongly, as from a secret with a newline."""
    env = {"XDG_DATA_HOME": str(tmp_path)}
    user_seal(env)
    path = tmp_path / "kabuild" / KEY_FILE
    path.write_bytes(spoilt)
    path.chmod(mode)

    seal = user_seal(env)

    assert seal.problem.startswith(f"{path}: {problem}")
    assert key_problem(env) == seal.problem
    assert seal.key != spoilt
    assert seal.key != user_seal(env).key
    assert path.read_bytes() == spoilt


@pytest.mark.parametrize("kind", ["directory", "pipe", "device"])
def test_a_key_is_neither_read_from_nor_written_to_what_is_no_file(
    tmp_path: Path, kind: str
) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path)}
    path = data_home(env) / "seal.key"
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    before = path.lstat()

    seal = user_seal(env)

    assert str(path) in seal.problem
    assert ("directory" if kind == "directory" else "expected a file") in seal.problem.lower()
    assert seal.key != user_seal(env).key
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)


def test_a_relative_directory_of_the_user_is_ignored() -> None:
    """As the XDG base directory specification says: 'relative' would depend on where one is."""
    env = {"XDG_DATA_HOME": "relative", "HOME": "/h"}

    assert data_home(env) == Path("/h/.local/share/kabuild")


def test_without_a_place_for_a_key_there_is_one_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "kabuild").write_text("no directory")
    env = {"XDG_DATA_HOME": str(tmp_path)}

    seal = user_seal(env)

    assert str(tmp_path) in seal.problem
    assert seal.key != user_seal(env).key
    assert os.listdir(tmp_path) == ["kabuild"]  # noqa: PTH208


def test_asking_about_the_key_makes_none(tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path)}

    assert key_problem(env) == ""
    assert os.listdir(tmp_path) == []  # noqa: PTH208
