"""Libraries of drivers: which of several a program would load."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.platform import Library, find_library

NAME = "libdriver.so.1"
with Path("/proc/self/exe").open("rb") as python:
    HEAD = python.read(64)
CLASS, PROCESSOR = 4, 18  # where an ELF file says what it is for


@pytest.mark.parametrize("place", [CLASS, PROCESSOR])
def test_a_library_for_other_processors_is_passed_over(tmp_path: Path, place: int) -> None:
    """The loader's cache names that of 32 bits first, where a machine has both."""
    other, own = tmp_path / "i386" / NAME, tmp_path / "x86_64" / NAME
    foreign = bytearray(HEAD)
    foreign[place] ^= 1
    for file, head in ((other, foreign), (own, HEAD)):
        file.parent.mkdir()
        file.write_bytes(head)
    cache = tmp_path / "ld.so.cache"
    cache.write_bytes(b"head\0" + b"".join(bytes(file) + b"\0" for file in (other, own)))

    assert find_library(NAME, {}, cache) == Library(str(own), by_default=True)
    advice = {"LD_LIBRARY_PATH": str(other.parent)}
    assert find_library(NAME, advice, cache) == Library(str(own), by_default=True)
    own.unlink()
    assert find_library(NAME, {}, cache) is None


def test_what_the_user_advises_comes_first_whatever_it_is(tmp_path: Path) -> None:
    """A file that is no library at all is what the loader would stumble over."""
    (tmp_path / NAME).write_text("not ELF")

    found = find_library(NAME, {"LD_LIBRARY_PATH": f"relative:{tmp_path}"}, tmp_path / "no cache")

    assert found == Library(str(tmp_path / NAME), by_default=False)


def test_a_drivers_own_places_come_last_and_no_loader_knows_them(tmp_path: Path) -> None:
    own, place = tmp_path / "own" / NAME, tmp_path / "place" / NAME
    for file in (own, place):
        file.parent.mkdir()
        file.write_bytes(HEAD)
    cache, places = tmp_path / "no cache", (str(place.parent),)
    advice = {"LD_LIBRARY_PATH": str(own.parent)}

    assert find_library(NAME, {}, cache) is None
    assert find_library(NAME, {}, cache, places=places) == Library(str(place), by_default=False)
    assert find_library(NAME, advice, cache, places=places) == Library(str(own), by_default=False)
