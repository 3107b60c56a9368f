"""Foreign results that no store could hold: found before anything of their file is imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kabuild.base.canonical import int_field, message_field, text_field
from kabuild.base.errors import BundleError
from kabuild.model.digest import Digest
from kabuild.store import Store, merkle
from kabuild.store.portable.reader import import_results
from kabuild.store.portable.writer import export_results

from .conftest import Shelf

LIMIT = 1 << 20


@pytest.fixture
def other(tmp_path: Path) -> Shelf:
    """The store of another machine."""
    return Shelf(Store.open(tmp_path / "other"))


def entry_of(*fields: bytes, started: int = 1, ended: int = 2) -> bytes:
    """An entry as no store of ours writes it."""
    times = message_field(7, int_field(1, started)) + message_field(8, int_field(1, ended))
    return b"".join(fields) + message_field(9, times)


def output(path: str, blob: Digest) -> bytes:
    return message_field(2, text_field(1, f"out/{path}") + message_field(2, blob.to_wire()))


def tree(shelf: Shelf, path: str, **names: Digest) -> bytes:
    files = {name: merkle.FileNode(digest) for name, digest in names.items()}
    digest = shelf.store.cas.put(merkle.Directory(files, {}).tree_message())
    return message_field(3, merkle.output_directory(f"out/{path}", digest))


HUGE = 1 << 62
Made = Callable[[Shelf, Digest, Digest], bytes]


@pytest.mark.parametrize(
    "made",
    [
        lambda _, a, __: entry_of(output("f", a), started=0, ended=HUGE),
        lambda _, a, __: entry_of(output("f", a), started=HUGE, ended=0),
        lambda _, a, __: entry_of(output("f", a), int_field(4, 1 << 69)),
        lambda _, a, b: entry_of(output("f", a), output("f", b)),
        lambda _, a, __: entry_of(output("f", a), output("f", a)),
        lambda _, a, __: entry_of(output("f", a), output("f/g", a)),
        lambda _, a, __: entry_of(output("f" * 256, a)),
        lambda _, a, __: entry_of(output("/".join(["f" * 200] * 30), a)),
        lambda _, a, __: entry_of(output("d//f", a)),
        lambda s, a, _: entry_of(tree(s, "t", x=a), tree(s, "t/x", y=a)),
        lambda s, a, _: entry_of(tree(s, "t", x=a), output("t/x/y", a)),
        lambda s, a, b: entry_of(tree(s, "t", x=a), tree(s, "t", x=b)),
        lambda s, _, __: entry_of(tree(s, "t"), tree(s, "t")),
        lambda s, a, _: entry_of(tree(s, "t"), output("t", a)),
        lambda s, a, _: entry_of(tree(s, "t", **{"x\0y": a})),
        lambda s, a, _: entry_of(tree(s, "t", **{"x" * 256: a})),
    ],
)
def test_nothing_is_imported_beside_a_result_that_cannot_be_stored(
    shelf: Shelf, other: Shelf, tmp_path: Path, made: Made
) -> None:
    """Wherever its key sorts: the honest results of the file come before and after it."""
    blobs = [shelf.blob(bytes([n])) for n in range(2)]
    keys = sorted(shelf.result(name, blobs).hash for name in ("one", "two", "three"))
    for key in (keys[0], keys[-1]):
        shelf.store.actions.put_message(Digest(key, 0), made(shelf, *blobs))
        file = tmp_path / key
        export_results(shelf.store, file, keys)

        with pytest.raises(BundleError, match="cannot be stored"):
            import_results(other.store, file, limit=LIMIT)
        assert not [path for path in (other.root / "ac").rglob("*") if path.is_file()]


def test_an_entry_of_another_writer_is_imported(shelf: Shelf, other: Shelf, tmp_path: Path) -> None:
    """Its trees come in an order of their own, one is empty, and one name is as long as allowed."""
    blob = shelf.blob(b"x")
    key = shelf.result("x", [blob])
    entry = entry_of(tree(shelf, "t", **{"x" * 255: blob}), tree(shelf, "e"), output("f", blob))
    shelf.store.actions.put_message(key, entry)
    export_results(shelf.store, tmp_path / "x", [key.hash])

    assert import_results(other.store, tmp_path / "x", limit=LIMIT).results == 1
    theirs = other.store.actions.get(key)
    assert theirs is not None
    assert theirs.directories == ("e", "t")
