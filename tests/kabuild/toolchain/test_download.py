"""One file over a network that drops, lies and stops."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.base.errors import DriftError, Reason, ToolchainError
from kabuild.toolchain.fetch.download import download, measure
from kabuild.toolchain.fetch.http import Http
from kabuild.toolchain.lock import LockedFile
from tests.testkit.fileserver import FileServer, serving

DATA = bytes(range(256)) * 400
FILE = LockedFile("pool/x.deb", "x=1", hashlib.sha256(DATA).hexdigest(), len(DATA))
PATH = "/x"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as server:
        server.files[PATH] = DATA
        yield server


def get(server: FileServer, target: Path, *paths: str) -> int:
    """Download ``FILE`` from some paths; the sum of all reported progress."""
    advanced: list[int] = []
    urls = [f"{server.url}{path}" for path in paths or (PATH,)]
    download(Http(), urls, FILE, target, advanced.append)
    return sum(advanced)


def failure(server: FileServer, target: Path, *paths: str) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        get(server, target, *paths)
    return caught.value


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "part"


def test_a_dropped_connection_is_resumed(server: FileServer, target: Path) -> None:
    server.cuts[PATH] = [1000, 5000]

    assert get(server, target) == len(DATA)
    assert target.read_bytes() == DATA
    assert server.asked(PATH) == ["", "bytes=1000-", "bytes=6000-"]


def test_a_server_that_cannot_resume_sends_all_again(server: FileServer, target: Path) -> None:
    server.cuts[PATH] = [1000]
    server.resumes = False

    assert get(server, target) == len(DATA)
    assert target.read_bytes() == DATA


def test_what_an_earlier_attempt_got_is_used(server: FileServer, target: Path) -> None:
    target.write_bytes(DATA[:77])

    assert get(server, target) == len(DATA) - 77
    assert server.asked(PATH) == ["bytes=77-"]


def test_a_file_that_is_there_is_not_asked_for(server: FileServer, target: Path) -> None:
    target.write_bytes(DATA)

    get(server, target)

    assert not server.requests


def test_a_file_that_always_ends_early(server: FileServer, target: Path) -> None:
    server.files[PATH] = DATA[:-1]

    error = failure(server, target)

    assert error.reason is Reason.FETCH_FAILED
    assert f"{len(DATA) - 1} of {len(DATA)} bytes" in error.hint


@pytest.mark.parametrize(
    "body", [DATA[:-1] + b"!", b"<html>moved</html>".ljust(len(DATA)), DATA + b"more" * 10_000]
)
def test_another_file_is_refused_and_nothing_is_left(
    server: FileServer, target: Path, body: bytes
) -> None:
    server.files[PATH] = body

    error = failure(server, target)

    assert isinstance(error, DriftError)
    assert error.message == "digest mismatch for x.deb"
    assert FILE.sha256 in error.hint
    assert "nothing was unpacked" in error.hint
    assert not target.exists()


def test_damage_in_an_earlier_attempt_is_noticed(server: FileServer, target: Path) -> None:
    """And then forgotten: the next attempt begins anew."""
    target.write_bytes(b"?" * 100)
    assert isinstance(failure(server, target), DriftError)

    get(server, target)

    assert target.read_bytes() == DATA


def test_a_failing_server_is_asked_again(server: FileServer, target: Path) -> None:
    server.errors[PATH] = [503, 500]

    get(server, target)

    assert target.read_bytes() == DATA


def test_the_next_mirror_is_asked(server: FileServer, target: Path) -> None:
    get(server, target, "/absent", PATH)

    assert len(server.asked("/absent")) == 1
    assert target.read_bytes() == DATA


def test_no_server_at_all(target: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        download(Http(), ["http://user:secret@127.0.0.1:1/x"], FILE, target, lambda _: None)

    assert caught.value.reason is Reason.FETCH_FAILED
    assert "http://127.0.0.1:1/x: Connection refused" in caught.value.hint
    assert "secret" not in str(caught.value)


def test_a_file_that_no_index_knows(target: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        download(Http(), [], FILE, target, lambda _: None)

    assert "no configured index or mirror has it" in caught.value.hint


def test_measuring_reads_no_more_than_it_has_to(server: FileServer) -> None:
    assert measure(Http(), f"{server.url}{PATH}", "known") == ("known", len(DATA))
    assert not server.asked(PATH)
    assert measure(Http(), f"{server.url}{PATH}", "") == (FILE.sha256, len(DATA))
