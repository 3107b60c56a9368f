"""The disk form of blobs: layout, concurrency, sudden death, full and read-only disks."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

import pytest

from kabuild.base.errors import Reason, StoreError
from kabuild.model.digest import Digest
from kabuild.store import Cas, DiskCas, Store
from kabuild.store import cas as cas_module
from kabuild.store.scratch import Scratch

REPOSITORY = Path(__file__).parents[3]
NAMESPACES = subprocess.run(["unshare", "-Urm", "true"], check=False).returncode == 0


@pytest.fixture
def cas(tmp_path: Path) -> Iterator[DiskCas]:
    scratch = Scratch(tmp_path / "tmp")
    yield DiskCas(tmp_path, scratch)
    scratch.close()


def test_the_layout_is_that_of_bazels_disk_cache(cas: DiskCas, tmp_path: Path) -> None:
    digest = cas.put(b"blob")

    blob = tmp_path / "cas" / digest.hash[:2] / digest.hash
    assert blob.read_bytes() == b"blob"
    assert blob.stat().st_mode & 0o777 == 0o555


def test_linking_makes_no_copy_and_hashes_once(
    cas: DiskCas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = cas.put(b"blob" * 1000)
    reader = DiskCas(tmp_path, Scratch(tmp_path / "tmp"))
    hashed: list[object] = []
    real = hashlib.file_digest

    def counting(file: IO[bytes], name: str) -> object:
        hashed.append(file)
        return real(file, name)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", counting)

    for name in ("a", "b", "c"):
        reader.link_to(digest, tmp_path / name)

    assert (tmp_path / "a").stat().st_ino == Path(cas.path_of(digest)).stat().st_ino
    assert len(hashed) == 1


def test_damage_after_the_first_link_is_noticed(cas: DiskCas, tmp_path: Path) -> None:
    digest = cas.put(b"blob")
    cas.link_to(digest, tmp_path / "a")
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "a").write_bytes(b"BLOB")

    with pytest.raises(StoreError) as caught:
        cas.link_to(digest, tmp_path / "b")
    assert caught.value.reason is Reason.BLOB_MISSING


def test_where_links_do_not_work_the_blob_is_copied(
    cas: DiskCas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = cas.put(b"blob")

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    cas.link_to(digest, tmp_path / "copy")

    assert (tmp_path / "copy").read_bytes() == b"blob"
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o555
    assert (tmp_path / "copy").stat().st_nlink == 1


def test_a_link_to_an_existing_file_overwrites_nothing(cas: DiskCas, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"precious")

    with pytest.raises(FileExistsError):  # it is no fault of the store
        cas.link_to(cas.put(b"blob"), tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == b"precious"


def _write_and_read(root: str, seed: int) -> None:
    with Store.open(Path(root)) as store:
        for number in range(60):
            data = bytes([number % 20]) * (number % 20 * 997)
            digest = store.cas.put(data)
            if store.cas.get(digest) != data:
                os._exit(3)
            target = store.scratch.path(f"link{seed}")
            store.cas.link_to(digest, target)
            store.cas.put_file(target, move=seed % 2 == 0)


def test_many_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_write_and_read, args=(str(tmp_path), seed)) for seed in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0] * 4
    assert_whole(tmp_path)
    assert len(list((tmp_path / "cas").glob("*/*"))) == 20


def test_a_writer_killed_at_any_moment_leaves_no_partial_blob(tmp_path: Path) -> None:
    """Kill -9 after ever more blobs; what is there is whole, and what is left over is swept."""
    script = (
        "import sys; from pathlib import Path; from kabuild.store import Store\n"
        "store = Store.open(Path(sys.argv[1]))\n"
        "for n in range(10**6):\n"
        "    store.cas.put((sys.argv[2] + str(n)).encode() * 50_000)\n"
        "    print(n, flush=True)\n"
    )
    for blobs in (1, 4, 9):
        with subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), f"round {blobs}"],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout
            for _ in range(blobs):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        assert_whole(tmp_path)
        assert list((tmp_path / "tmp").iterdir()), "the killed writer left its directory"

        Store.open(tmp_path).close()

        assert not list((tmp_path / "tmp").iterdir())


def assert_whole(root: Path) -> None:
    """Every blob has the content that its name says."""
    blobs = list((root / "cas").glob("*/*"))
    assert blobs
    for blob in blobs:
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def test_a_file_that_changes_while_it_is_stored_cannot_spoil_the_store(
    cas: DiskCas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is that of the bytes that were copied, read once."""
    source = tmp_path / "source"
    source.write_bytes(b"a" * 100)
    monkeypatch.setattr(cas_module, "_CHUNK", 10)
    read: list[int] = []
    real_open = Path.open

    def opening(self: Path, *arguments: object, **rest: object) -> object:
        if self == source and not read:
            read.append(1)
        elif read:
            with open(source, "r+b") as file:
                file.seek(90)
                file.write(b"b" * 10)
        return real_open(self, *arguments, **rest)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", opening)
    digest = cas.put_file(source)

    assert cas.get(digest) == b"a" * 90 + b"b" * 10
    assert digest != Digest.of(b"a" * 100)


IN_A_SMALL_FILE_SYSTEM = """
import sys
from pathlib import Path
from kabuild.base.errors import StoreError
from kabuild.store import Store
root, what = Path(sys.argv[1]), sys.argv[2]
try:
    with Store.open(root) as store:
        small = store.cas.put(b"small")
        big = root.parent / "big"
        {"put": lambda: store.cas.put(b"x" * (1 << 20)),
         "put_file": lambda: store.cas.put_file(big)}[what]()
except StoreError as error:
    print(error.reason.name, "|", error, "|", len(list(root.glob("cas/*/*"))))
"""


@pytest.mark.skipif(not NAMESPACES, reason="needs user namespaces to mount a file system")
@pytest.mark.parametrize("what", ["put", "put_file"])
def test_a_full_disk_is_said_clearly(tmp_path: Path, what: str) -> None:
    """On a real file system of 256 KiB; what was stored before stays whole."""
    (tmp_path / "root").mkdir()
    (tmp_path / "big").write_bytes(b"y" * (1 << 20))
    printed = _in_namespace(tmp_path / "root", "size=256k", what)

    reason, message, blobs = printed.split(" | ")
    assert reason == "STORE_FULL"
    assert "is full" in message
    assert str(tmp_path / "root") in message
    assert int(blobs) == 1


@pytest.mark.skipif(not NAMESPACES, reason="needs user namespaces to mount a file system")
def test_a_read_only_disk_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    printed = _in_namespace(tmp_path / "root", "ro", "put")

    reason, message, _ = printed.split(" | ")
    assert reason == "STORE_UNWRITABLE"
    assert "KABUILD_CACHE" in message


def _in_namespace(root: Path, options: str, what: str) -> str:
    mount = f'mount -t tmpfs -o {options} none "$1" && exec "$2" -c "$3" "$1" "$4"'
    script = IN_A_SMALL_FILE_SYSTEM
    return subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, "sh", str(root), sys.executable, script, what],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def test_a_store_below_a_file_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StoreError, match="cannot be written") as caught:
        Store.open(tmp_path / "file" / "cache")
    assert caught.value.reason is Reason.STORE_UNWRITABLE


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, Reason.STORE_FULL),
        (errno.EDQUOT, Reason.STORE_FULL),
        (errno.EFBIG, Reason.STORE_FULL),
        (errno.EACCES, Reason.STORE_UNWRITABLE),
        (errno.EROFS, Reason.STORE_UNWRITABLE),
        (errno.EIO, Reason.STORE_UNWRITABLE),
    ],
)
def test_each_refusal_of_the_disk_has_its_reason(
    cas: Cas, monkeypatch: pytest.MonkeyPatch, code: int, reason: Reason
) -> None:
    def refuse(path: str, *_: object) -> NoReturn:
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr("kabuild.store.cas.write_new", refuse)

    with pytest.raises(StoreError, match=os.strerror(code)) as caught:
        cas.put(b"data")
    assert caught.value.reason is reason
    assert caught.value.hint


def test_a_blob_that_nobody_may_read_is_readable_where_it_is_linked(
    cas: DiskCas, tmp_path: Path
) -> None:
    """In a sandbox it would be a file that cannot be read, and the candidate be blamed."""
    digest = cas.put(b"blob")
    Path(cas.path_of(digest)).chmod(0)

    cas.link_to(digest, tmp_path / "linked")

    assert (tmp_path / "linked").stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize("strange", ["pipe", "directory", "loop", "device"])
def test_what_is_no_file_counts_as_damage_and_goes(
    cas: DiskCas, tmp_path: Path, strange: str
) -> None:
    digest = cas.put(b"blob")
    path = Path(cas.path_of(digest))
    path.unlink()
    if strange == "pipe":
        os.mkfifo(path)
    elif strange == "directory":
        path.mkdir()
    else:
        path.symlink_to(path.name if strange == "loop" else "/dev/zero")

    assert not cas.has(digest)
    assert cas.put(b"blob") == digest
    assert cas.get(digest) == b"blob"
