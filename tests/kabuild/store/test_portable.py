"""Results in one file: what is written is read, and what was tampered with is refused by name."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from kabuild.base.errors import BundleError, Reason, StoreError
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import Store
from kabuild.store.action_cache import encode
from kabuild.store.portable.reader import import_results
from kabuild.store.portable.writer import export_results

from .conftest import OLD, Shelf

LIMIT = 1 << 20
Parts = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def other(tmp_path: Path) -> Shelf:
    """The store of another machine."""
    return Shelf(Store.open(tmp_path / "other"))


@pytest.fixture
def file(shelf: Shelf, tmp_path: Path) -> Path:
    """An export of two results, one of which has a tree."""
    blobs = [shelf.blob(bytes([n]) * 1000) for n in range(3)]
    keys = [
        shelf.result("one", blobs[:2]).hash,
        shelf.result("two", blobs[1:], directories=("d",)).hash,
    ]
    path = tmp_path / "store.kcache"
    export_results(shelf.store, path, keys)
    return path


def parts_of(file: Path) -> Parts:
    with (
        zstandard.open(file, "rb") as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        return [(item, (tar.extractfile(item) or io.BytesIO()).read()) for item in tar]


def write(file: Path, parts: Parts) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for item, data in parts:
            item.size = len(data)
            tar.addfile(item, io.BytesIO(data))
    file.write_bytes(zstandard.compress(buffer.getvalue()))


def refused(other: Shelf, file: Path, *, limit: int = LIMIT) -> BundleError:
    """The error of an import, which takes over no result."""
    with pytest.raises(BundleError) as caught:
        import_results(other.store, file, limit=limit)
    assert not [path for path in (other.root / "ac").rglob("*") if path.is_file()]
    return caught.value


def test_what_is_exported_is_imported(shelf: Shelf, other: Shelf, file: Path) -> None:
    done = import_results(other.store, file, limit=LIMIT)

    assert (done.results, done.known, done.disputed) == (2, 0, ())
    for path in (shelf.root / "ac").rglob("*"):
        if path.is_file():
            key = Digest(path.name, 0)
            ours, theirs = shelf.store.actions.get(key), other.store.actions.get(key)
            assert ours == theirs
            assert theirs is not None
            for output in theirs.files:
                assert other.store.cas.get(output.digest) == shelf.store.cas.get(output.digest)


def test_a_second_import_changes_nothing(other: Shelf, file: Path) -> None:
    import_results(other.store, file, limit=LIMIT)
    before = other.size()

    done = import_results(other.store, file, limit=LIMIT)

    assert (done.results, done.known, done.bytes) == (0, 2, 0)
    assert other.size() == before


def test_equal_content_is_equal_bytes(shelf: Shelf, file: Path, tmp_path: Path) -> None:
    keys = [path.name for path in (shelf.root / "ac").rglob("*") if path.is_file()]

    export_results(shelf.store, tmp_path / "again", reversed(keys))

    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def test_what_is_not_hermetic_or_not_whole_is_left_out(shelf: Shelf, tmp_path: Path) -> None:
    gone = shelf.blob(b"gone")
    keys = [
        shelf.result("bare", [], hermetic=False).hash,
        shelf.result("lost", [gone]).hash,
        "0" * 64,
    ]
    unknown = shelf.result("unknown", [])
    shelf.blob_path(unknown).unlink()
    shelf.blob_path(gone).unlink()

    done = export_results(shelf.store, tmp_path / "x", [*keys, unknown.hash])

    assert (done.results, done.left_out) == (0, 4)


@pytest.mark.parametrize("tail", [b"\x54\x00", b"\x52\x02\x0c\x00", b"\x52\x04\x0a\x02\x0c\x00"])
def test_a_result_of_a_damaged_action_is_left_out(
    shelf: Shelf, tmp_path: Path, tail: bytes
) -> None:
    """The message ends in a field of no known kind: its own, its properties', or one's."""
    action = shelf.result("damaged", [])
    path = shelf.blob_path(action)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + tail)

    done = export_results(shelf.store, tmp_path / "x", [action.hash])

    assert (done.results, done.left_out) == (0, 1)


def test_a_damaged_blob_is_not_handed_on(shelf: Shelf, tmp_path: Path) -> None:
    blob = shelf.blob(b"good")
    key = shelf.result("x", [blob])
    shelf.blob_path(blob).chmod(0o644)
    shelf.blob_path(blob).write_bytes(b"evil")

    with pytest.raises(StoreError) as caught:
        export_results(shelf.store, tmp_path / "x", [key.hash])

    assert caught.value.reason is Reason.BLOB_CORRUPT
    assert blob.hash in caught.value.message
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_exporting_is_no_use(shelf: Shelf, tmp_path: Path) -> None:
    blob = shelf.blob(b"old", OLD)
    key = shelf.result("x", [blob], OLD)

    export_results(shelf.store, tmp_path / "x", [key.hash])

    assert shelf.blob_path(blob).stat().st_mtime == OLD


def test_our_own_result_stays(shelf: Shelf, other: Shelf, file: Path) -> None:
    key = next(p.name for p in (shelf.root / "ac").rglob("*") if p.is_file())
    ours = ActionResult(0, (OutputFile("d/0", other.blob(b"ours")),))
    other.store.actions.put(Digest(key, 0), ours)

    done = import_results(other.store, file, limit=LIMIT)

    assert done.disputed == (key,)
    assert other.store.actions.get(Digest(key, 0)) == ours


def tampered(parts: Parts) -> Parts:
    index = next(n for n, (item, _) in enumerate(parts) if item.name.startswith("cas/"))
    item, data = parts[index]
    parts[index] = (item, bytes([data[0] ^ 1]) + data[1:])
    return parts


def longer(parts: Parts) -> Parts:
    index = next(n for n, (item, _) in enumerate(parts) if item.name.startswith("cas/"))
    parts[index] = (parts[index][0], parts[index][1] + b"more")
    return parts


def escaping(parts: Parts) -> Parts:
    parts[1][0].name = "cas/../../../escaped"
    return parts


def linking(parts: Parts) -> Parts:
    parts[1][0].type, parts[1][0].linkname = tarfile.SYMTYPE, "/etc/passwd"
    return [(item, b"" if item.issym() else data) for item, data in parts]


def added(parts: Parts) -> Parts:
    return [*parts, (tarfile.TarInfo("/etc/cron.d/x"), b"x")]


def cut(parts: Parts) -> Parts:
    return parts[:-1]


def swapped(parts: Parts) -> Parts:
    return [parts[0], parts[2], parts[1], *parts[3:]]


def changed_result(parts: Parts) -> Parts:
    item, data = parts[-1]
    return [*parts[:-1], (item, data[:-1] + bytes([data[-1] ^ 1]))]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (tampered, "was changed: its content has another digest"),
        (longer, "bytes, not"),
        (escaping, "it holds 'cas/../../../escaped'"),
        (linking, "is not a regular file"),
        (added, "it holds '/etc/cron.d/x', which its manifest does not name"),
        (cut, "is missing"),
        (swapped, "where cas/"),
        (changed_result, "was changed: its content has another digest"),
    ],
)
def test_tampering_is_refused_by_name(
    other: Shelf, file: Path, change: Callable[[Parts], Parts], words: str, tmp_path: Path
) -> None:
    parts = parts_of(file)
    names = [item.name for item, _ in parts]
    write(file, change(parts))

    error = refused(other, file)

    assert error.reason is Reason.BUNDLE_DAMAGED
    assert words in error.message
    if change is tampered:
        assert names[1].removeprefix("cas/") in error.message
    assert not [*tmp_path.rglob("escaped")]


def with_manifest(file: Path, **changes: object) -> None:
    parts = parts_of(file)
    value = {**json.loads(parts[0][1]), **changes}
    parts[0] = (parts[0][0], json.dumps(value).encode())
    write(file, parts)


@pytest.mark.parametrize(
    "changes",
    [
        {"blobs": {"../../etc/passwd": 1}},
        {"blobs": {"0" * 64: -1}},
        {"blobs": {"0" * 64: True}},
        {"blobs": []},
        {"results": {"0" * 64: ["0" * 64, 1 << 40]}},
        {"results": {"0" * 64: "x"}},
        {"results": {"..": ["0" * 64, 1]}},
    ],
)
def test_manifests_that_lie(other: Shelf, file: Path, changes: dict[str, object]) -> None:
    with_manifest(file, **changes)

    assert refused(other, file).reason is Reason.BUNDLE_DAMAGED


def test_another_format_is_named(other: Shelf, file: Path) -> None:
    with_manifest(file, schema="kabuild/bundle/1")

    error = refused(other, file)

    assert error.reason is Reason.BUNDLE_VERSION
    assert "kabuild replay" in error.hint


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": "x" * 200_000},
        {"blobs": {"x" * 200_000: 1}},
        {"blobs": {"0" * 64: "x" * 200_000}},
    ],
)
def test_a_message_is_no_longer_than_a_message(
    other: Shelf, file: Path, changes: dict[str, object]
) -> None:
    with_manifest(file, **changes)

    assert len(refused(other, file).message) < 500


def test_a_bomb_is_refused_before_it_goes_off(other: Shelf, file: Path) -> None:
    """By what it says; and where it says less than it holds, by that."""
    error = refused(other, file, limit=1000)
    assert error.reason is Reason.BUNDLE_TOO_LARGE
    assert "--max_bytes" in error.hint
    assert other.size() == 0

    zeros = b"\0" * (64 << 20)
    parts = parts_of(file)
    parts[1] = (parts[1][0], zeros)
    write(file, parts)
    assert "bytes, not" in refused(other, file).message
    assert other.size() == 0


@pytest.mark.parametrize("size", [0, 1, 100, -100])
def test_files_that_are_cut_short(other: Shelf, file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])

    assert refused(other, file).reason is Reason.BUNDLE_DAMAGED


def test_what_is_no_export(other: Shelf, file: Path) -> None:
    file.write_bytes(b"Not an export at all." * 100)

    assert refused(other, file).reason is Reason.BUNDLE_DAMAGED


def forged(shelf: Shelf, file: Path, key: str, entry: bytes) -> None:
    """A file that is in order but for one result, which is made up."""
    parts = parts_of(file)
    value = json.loads(parts[0][1])
    digest = Digest.of(entry)
    value["results"] = {key: [digest.hash, digest.size]}
    blobs = [part for part in parts[1:] if part[0].name.startswith("cas/")]
    manifest = (parts[0][0], json.dumps(value).encode())
    write(file, [manifest, *blobs, (tarfile.TarInfo(f"ac/{key}"), entry)])


def test_a_result_whose_outputs_would_lie_elsewhere(shelf: Shelf, other: Shelf, file: Path) -> None:
    key = next(p.name for p in (shelf.root / "ac").rglob("*") if p.is_file())
    blob = shelf.blob(bytes([0]) * 1000)
    good = encode(ActionResult(0, (OutputFile("aa/aa/x", blob),)), shelf.store.cas, ended=1.0)
    forged(shelf, file, key, good.replace(b"aa/aa/x", b"../../x"))

    assert "cannot be understood" in refused(other, file).message


def test_a_result_that_needs_what_is_not_there(shelf: Shelf, other: Shelf, file: Path) -> None:
    key = next(p.name for p in (shelf.root / "ac").rglob("*") if p.is_file())
    absent = OutputFile("x", Digest.of(b"absent"))
    forged(shelf, file, key, encode(ActionResult(0, (absent,)), shelf.store.cas, ended=1.0))

    assert "which is not in the file" in refused(other, file).message


def test_a_result_of_nobody_knows_what(shelf: Shelf, other: Shelf, file: Path) -> None:
    """Its key is no action of the file, so nothing says that it came from a sandbox."""
    forged(shelf, file, "0" * 64, encode(ActionResult(0), shelf.store.cas, ended=1.0))

    assert "is not from a sandbox" in refused(other, file).message


@pytest.mark.parametrize("more", [b"x", b"\0" * 512, b"garbage"])
def test_something_behind_its_end_is_refused(other: Shelf, file: Path, more: bytes) -> None:
    file.write_bytes(file.read_bytes() + more)

    assert "there is data after its end" in refused(other, file).message


def test_a_result_that_names_the_same_files_too_often(
    shelf: Shelf, other: Shelf, file: Path
) -> None:
    """Some kB that would be millions of files in memory."""
    blob = shelf.blob(bytes([0]) * 1000)
    keys = [path.name for path in (shelf.root / "ac").rglob("*") if path.is_file()]
    outputs = tuple(OutputFile(f"d/{n}", blob) for n in range(20_000))
    entry = encode(ActionResult(0, outputs), shelf.store.cas, ended=1.0)
    forged(shelf, file, keys[0], entry)

    assert "too often" in refused(other, file, limit=1 << 30).message
