"""What every Cas must do: on disk, in memory, and later remote."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kabuild.base.errors import Reason
from kabuild.model.digest import EMPTY, Digest
from kabuild.store import BlobMissingError, Cas, DiskCas
from kabuild.store.scratch import Scratch
from tests.testkit.store import MemoryCas

ABSENT = Digest.of(b"never stored")


class Subject:
    """A Cas with a way to damage a blob behind its back, and what it warned of."""

    def __init__(self, cas: Cas, warnings: list[str], damage: Callable[[Digest, bytes], None]):
        self.cas = cas
        self.warnings = warnings
        self.damage = damage


@pytest.fixture(params=["disk", "memory"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    warnings: list[str] = []
    if request.param == "memory":
        memory = MemoryCas(warnings.append)
        yield Subject(memory, warnings, lambda d, data: memory.blobs.update({d.hash: data}))
        return
    scratch = Scratch(tmp_path / "store" / "tmp")
    disk = DiskCas(tmp_path / "store", scratch, warn=warnings.append)

    def damage(digest: Digest, data: bytes) -> None:
        path = Path(disk.path_of(digest))
        path.chmod(0o644)
        path.write_bytes(data)

    yield Subject(disk, warnings, damage)
    scratch.close()


@given(data=st.binary(max_size=2000))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_put_comes_back(subject: Subject, data: bytes) -> None:
    digest = subject.cas.put(data)

    assert digest == Digest.of(data)
    assert subject.cas.get(digest) == data
    assert subject.cas.open(digest).read() == data


def test_an_empty_blob_is_a_blob(subject: Subject) -> None:
    assert subject.cas.put(b"") == EMPTY
    assert subject.cas.get(EMPTY) == b""


def test_an_absent_blob_is_named(subject: Subject, tmp_path: Path) -> None:
    assert not subject.cas.has(ABSENT)
    for use in (
        subject.cas.get,
        subject.cas.open,
        lambda digest: subject.cas.link_to(digest, tmp_path / "there"),
    ):
        with pytest.raises(BlobMissingError, match=ABSENT.hash) as caught:
            use(ABSENT)
        assert caught.value.reason is Reason.BLOB_MISSING
        assert caught.value.digests == (ABSENT,)


def test_missing_keeps_order_and_names_each_once(subject: Subject) -> None:
    here, other = subject.cas.put(b"here"), Digest.of(b"other")

    assert subject.cas.missing([other, here, ABSENT, other]) == [other, ABSENT]


@pytest.mark.parametrize("move", [True, False])
def test_a_file_is_stored_by_content(subject: Subject, tmp_path: Path, move: bool) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"content" * 1000)

    digest = subject.cas.put_file(source, move=move)

    assert subject.cas.get(digest) == b"content" * 1000
    if not move:
        source.write_bytes(b"edited later")
        assert subject.cas.get(digest) == b"content" * 1000


def test_a_linked_blob_is_read_only_and_executable(subject: Subject, tmp_path: Path) -> None:
    target = tmp_path / "linked"

    subject.cas.link_to(subject.cas.put(b"tool"), target)

    assert target.read_bytes() == b"tool"
    assert target.stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize("damaged", [b"tOol", b"too", b""], ids=["flipped", "short", "empty"])
def test_a_damaged_blob_is_dropped_and_can_be_put_again(
    subject: Subject, tmp_path: Path, damaged: bytes
) -> None:
    """Damage is noticed by readers and linkers; then the blob is simply absent."""
    target = tmp_path / "linked"
    uses: tuple[Callable[[Digest], object], ...] = (
        subject.cas.get,
        subject.cas.open,
        lambda digest: subject.cas.link_to(digest, target),
    )
    for number, use in enumerate(uses):
        digest = subject.cas.put(b"tool")
        subject.damage(digest, damaged)
        with pytest.raises(BlobMissingError):
            use(digest)

        assert not subject.cas.has(digest)
        assert not target.exists()
        assert len(subject.warnings) == number + 1
        assert digest.hash in subject.warnings[-1]
        subject.cas.put(b"tool")
        assert subject.cas.get(digest) == b"tool"


def test_a_directory_is_no_file(subject: Subject, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=os.strerror(21)):
        subject.cas.put_file(tmp_path)
