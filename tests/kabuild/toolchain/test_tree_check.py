"""Fetched trees that somebody changed: found by a stat per file, and named."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kabuild.base.errors import DriftError, Position, Reason, ToolchainError
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.toolchain import Declaration, Fetched, hash_file
from kabuild.toolchain.tree_check import SEEN, TreeCheck
from kabuild.toolchain.tree_store import TREE, TreeStore, listing
from tests.testkit.seal import SEAL

DIGEST = "d" * 64
DECLARATION = Declaration(
    Label("t", "cc"), "r", Fetched("pypi", ("cc==1",)), Position("t/BUILD.toml", 1)
)


@dataclass
class Reader:
    """Reads files, and remembers which."""

    read: list[str] = field(default_factory=list)

    def __call__(self, path: Path) -> Digest:
        self.read.append(path.name)
        return hash_file(path)


@pytest.fixture
def trees(tmp_path: Path) -> TreeStore:
    """A store with one tree: a program, two headers and a link."""
    trees = TreeStore(tmp_path / "trees", SEAL)
    with trees.working(DIGEST) as work:
        tree = work / TREE
        (tree / "include" / "deep").mkdir(parents=True)
        (tree / "include" / "a.h").write_text("#define A 1\n")
        (tree / "include" / "deep" / "b.h").write_text("#define B 1\n")
        (tree / "cc").write_text("elf")
        (tree / "cc").chmod(0o755)
        (tree / "lib").symlink_to("include")
        trees.publish(DIGEST, work, listing(tree))
    trees.tree(DIGEST).chmod(0o755)
    return trees


def later() -> int:
    """A time at which all files have been quiet for long."""
    return time.time_ns() + 3_600_000_000_000


def check(trees: TreeStore) -> tuple[list[str], list[str]]:
    """The differences, and the names of the files that were read, sorted."""
    reader = Reader()
    lines = TreeCheck(trees, read=reader, now_ns=later).differences(DIGEST)
    return lines, sorted(reader.read)


def test_what_was_found_whole_is_not_read_again(trees: TreeStore) -> None:
    assert check(trees) == ([], ["a.h", "b.h", "cc"])
    assert check(trees) == ([], [])


def test_what_was_not_quiet_is_read_again(trees: TreeStore) -> None:
    """A file that is written twice within one tick of the clock looks the same."""
    for _ in range(2):
        reader = Reader()
        assert TreeCheck(trees, read=reader).differences(DIGEST) == []
        assert len(reader.read) == 3


@pytest.mark.parametrize("known", [False, True], ids=["at first sight", "known before"])
def test_every_change_is_named(trees: TreeStore, *, known: bool) -> None:
    tree = trees.tree(DIGEST)
    if known:
        check(trees)
    with (tree / "include" / "a.h").open("a") as header:
        header.write("#error TAMPERED\n")
    (tree / "include" / "deep" / "b.h").unlink()
    (tree / "include" / "deep" / "new.h").write_text("")
    (tree / "cc").chmod(0o644)
    (tree / "lib").unlink()
    (tree / "lib").symlink_to("include/deep")

    expected = [
        "cc: changed",
        "include/a.h: changed",
        "include/deep/b.h: missing",
        "include/deep/new.h: added",
        "lib: changed",
    ]
    assert check(trees)[0] == expected
    assert check(trees)[0] == expected, "and again: a changed tree is never taken for whole"


def test_only_what_looks_different_is_read(trees: TreeStore) -> None:
    check(trees)
    (trees.tree(DIGEST) / "cc").touch()

    assert check(trees) == ([], ["cc"])
    assert check(trees) == ([], [])


def test_a_change_that_keeps_size_and_time_is_found(trees: TreeStore) -> None:
    import os

    check(trees)
    header = trees.tree(DIGEST) / "include" / "a.h"
    status = header.stat()
    header.write_text("#define A 2\n")
    os.utime(header, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert check(trees)[0] == ["include/a.h: changed"]


@pytest.mark.parametrize("text", ["", "[]", '{"cc": 1}', "{"])
def test_a_damaged_memory_costs_time_and_nothing_else(trees: TreeStore, text: str) -> None:
    check(trees)
    (trees.root / DIGEST / SEEN).write_text(text)

    assert check(trees) == ([], ["a.h", "b.h", "cc"])


def test_all_that_was_looked_at_is_told(trees: TreeStore) -> None:
    told: set[str] = set()
    TreeCheck(trees, lambda path: told.add(str(path))).differences(DIGEST)

    tree = trees.tree(DIGEST)
    paths = ("cc", "lib", "include", "include/a.h", "include/deep", "include/deep/b.h")
    assert told == {str(tree), *(str(tree / path) for path in paths)}


def test_the_error_names_the_files_and_what_to_do(trees: TreeStore) -> None:
    for number in range(12):
        (trees.tree(DIGEST) / f"x{number:02}").touch()

    with pytest.raises(DriftError) as caught:
        TreeCheck(trees).require(DECLARATION, Position("toolchains/lock.toml", 3), DIGEST)

    error = caught.value
    assert error.reason is Reason.TOOLCHAIN_DRIFT
    assert str(error.position) == "toolchains/lock.toml:3"
    assert error.message == f"//t:cc differs from its download: {trees.tree(DIGEST)} changed"
    assert error.hint.splitlines()[0] == "x00: added"
    assert error.hint.splitlines()[-2:] == [
        "and 2 more",
        "to get it again: kabuild toolchain fetch --force //t:cc",
    ]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"files": 1}'])
def test_without_its_manifest_nothing_is_believed(trees: TreeStore, text: str | None) -> None:
    manifest = trees.manifest(DIGEST)
    manifest.unlink() if text is None else manifest.write_text(text)

    with pytest.raises(ToolchainError, match="cannot be read") as caught:
        TreeCheck(trees).require(DECLARATION, DECLARATION.position, DIGEST)

    assert caught.value.reason is Reason.NO_TOOLCHAIN
    assert "fetch --force //t:cc" in caught.value.hint
