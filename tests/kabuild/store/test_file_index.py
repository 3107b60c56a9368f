"""The file index: cheap when nothing changed, and never wrong."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.model.digest import Digest
from kabuild.store import file_index
from kabuild.store.file_index import QUIET_NS, FileIndex
from tests.testkit.seal import SEAL


def later() -> int:
    """A time of day at which files written just now count as quiet."""
    return time.time_ns() + 2 * QUIET_NS


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.hip"
    path.write_bytes(b"content")
    return path


def forget_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, reading a file to hash it is an error."""

    def refuse(*_: object) -> None:
        raise AssertionError("hashed a file that has not changed")

    monkeypatch.setattr(hashlib, "file_digest", refuse)


def test_an_unchanged_file_is_not_read_again(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = FileIndex(tmp_path / "index", SEAL, now_ns=later)
    index.digest(str(source))
    index.save()
    forget_reading(monkeypatch)

    for again in (index, FileIndex(tmp_path / "index", SEAL)):
        assert again.digest(str(source))[0] == Digest.of(b"content")


def test_a_file_written_just_now_is_hashed_again(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one tick of the clock a second write may leave the same signature."""
    index = FileIndex(tmp_path / "index", SEAL)
    index.digest(str(source))
    index.save()
    forget_reading(monkeypatch)

    with pytest.raises(AssertionError, match="hashed"):
        FileIndex(tmp_path / "index", SEAL).digest(str(source))


@pytest.mark.parametrize("how", ["grown", "same size and mtime", "replaced", "mode"])
def test_a_changed_file_is_noticed(tmp_path: Path, source: Path, how: str) -> None:
    index = FileIndex(tmp_path / "index", SEAL, now_ns=later)
    before = source.stat()
    _, signature = index.digest(str(source))
    if how == "grown":
        source.write_bytes(b"content, longer")
    elif how == "same size and mtime":
        source.write_bytes(b"CONTENT")
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "replaced":
        other = tmp_path / "other"
        other.write_bytes(b"CONTENT")
        other.rename(source)
    else:
        source.chmod(0o755)

    digest, after = index.digest(str(source))

    assert digest == Digest.of(source.read_bytes())
    assert after != signature


@given(
    edits=st.lists(st.tuples(st.sampled_from("ab"), st.binary(min_size=1, max_size=2)), max_size=8)
)
@settings(max_examples=40, deadline=None)
def test_it_is_right_after_any_edits(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, bytes]]
) -> None:
    """Fast edits of few bytes, with real time: what the clock cannot tell apart is read."""
    home = tmp_path_factory.mktemp("index")
    for name, content in edits:
        (home / name).write_bytes(content)
        index = FileIndex(home / "index", SEAL)
        assert index.digest(str(home / name))[0] == Digest.of(content)
        index.save()


def test_two_processes_that_write_keep_each_others_entries(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"other")
    first, second = (FileIndex(tmp_path / "index", SEAL, now_ns=later) for _ in range(2))
    first.digest(str(source))
    second.digest(str(other))
    first.save()
    second.save()
    forget_reading(monkeypatch)

    third = FileIndex(tmp_path / "index", SEAL)
    assert third.digest(str(source))[0] == Digest.of(b"content")
    assert third.digest(str(other))[0] == Digest.of(b"other")


@pytest.mark.parametrize("spoil", ["cut", "flipped", "other version", "garbage", "empty"])
def test_a_spoilt_index_costs_time_and_nothing_else(
    tmp_path: Path, source: Path, spoil: str
) -> None:
    path = tmp_path / "index"
    index = FileIndex(path, SEAL, now_ns=later)
    index.digest(str(source))
    index.save()
    data = path.read_bytes()
    wrong = Digest.of(b"wrong!!").hash.encode()
    path.write_bytes(
        {
            "cut": data[:-3],
            "flipped": data.replace(Digest.of(b"content").hash.encode(), wrong),
            "other version": data.replace(b"index 1", b"index 9"),
            "garbage": b"\0" * 50,
            "empty": b"",
        }[spoil]
    )

    again = FileIndex(path, SEAL, now_ns=later)
    assert again.digest(str(source))[0] == Digest.of(b"content")
    again.save()
    assert source.name in json.dumps(json.loads(path.read_bytes().partition(b"\n")[2]))


def test_nothing_learnt_writes_nothing(tmp_path: Path, source: Path) -> None:
    index = FileIndex(tmp_path / "index", SEAL, now_ns=later)
    index.digest(str(source))
    index.save()
    written = (tmp_path / "index").stat()

    again = FileIndex(tmp_path / "index", SEAL)
    again.digest(str(source))
    again.save()

    found = (tmp_path / "index").stat()
    assert (found.st_ino, found.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_a_large_index_forgets_what_nobody_looks_at(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_index, "_LIMIT", 2)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode())
        index = FileIndex(tmp_path / "index", SEAL, now_ns=later)
        index.digest(str(tmp_path / name))
        index.digest(str(source))
        index.save()

    kept = json.loads((tmp_path / "index").read_bytes().partition(b"\n")[2])
    assert sorted(Path(path).name for path in kept) == ["c", "source.hip"]


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileIndex(tmp_path / "index", SEAL).digest(str(tmp_path / "absent"))


def test_a_file_of_proc_has_no_size_and_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="it changes while it is read"):
        FileIndex(tmp_path / "index", SEAL).digest("/proc/self/environ")


def test_a_file_that_changes_whenever_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows = tmp_path / "grows.log"
    grows.write_bytes(b"first\n")
    digest = hashlib.file_digest

    def grown(file: object, name: str) -> object:
        found = digest(file, name)  # type: ignore[arg-type]
        with grows.open("ab") as more:
            more.write(b"and more\n")
        return found

    monkeypatch.setattr("hashlib.file_digest", grown)

    with pytest.raises(OSError, match="it changes while it is read"):
        FileIndex(tmp_path / "index", SEAL).digest(str(grows))
