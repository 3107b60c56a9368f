"""Fingerprints change with content, and with nothing else."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kabuild.model.digest import Digest
from kabuild.toolchain.distributions import installed
from kabuild.toolchain.fingerprint import (
    distribution_fingerprint,
    environment_fingerprint,
    hash_file,
    hash_record,
    tree_fingerprint,
    tree_listing,
)
from kabuild.toolchain.record_memory import RecordMemory
from tests.testkit.seal import SEAL

Install = Callable[..., Path]

RECORD = """\
../../../bin/tool,sha256=path-of-the-environment,9
a/__init__.py,sha256=aaa,1
a/__pycache__/__init__.cpython-311.pyc,,
a/b.so,sha256=bbb,2
a-1.0.dist-info/INSTALLER,sha256=pip,4
a-1.0.dist-info/METADATA,sha256=mmm,5
a-1.0.dist-info/RECORD,,
a-1.0.dist-info/REQUESTED,sha256=e,0
a-1.0.dist-info/direct_url.json,sha256=u,7
"""


def digest_of(tmp_path: Path, text: str) -> Digest:
    path = tmp_path / "RECORD"
    path.write_text(text)
    return hash_record(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("path-of-the-environment", "elsewhere"),
        ("sha256=pip", "sha256=uv"),
        ("a-1.0.dist-info/REQUESTED,sha256=e,0\n", ""),
        ("a-1.0.dist-info/direct_url.json,sha256=u,7\n", ""),
        ("a/__pycache__/__init__.cpython-311.pyc,,\n", ""),
        ("\n", "\r\n"),
    ],
)
def test_how_it_was_installed_changes_nothing(tmp_path: Path, old: str, new: str) -> None:
    changed = RECORD.replace(old, new)
    assert changed != RECORD
    assert digest_of(tmp_path, changed) == digest_of(tmp_path, RECORD)


def test_the_order_of_a_record_changes_nothing(tmp_path: Path) -> None:
    backwards = "\n".join(reversed(RECORD.splitlines()))
    assert digest_of(tmp_path, backwards) == digest_of(tmp_path, RECORD)


@pytest.mark.parametrize(
    ("old", "new"), [("bbb", "bbc"), ("a/b.so", "a/c.so"), ("mmm", "nnn"), ("a/b.so,sha", "x,sha")]
)
def test_changed_content_changes_the_digest(tmp_path: Path, old: str, new: str) -> None:
    assert digest_of(tmp_path, RECORD.replace(old, new)) != digest_of(tmp_path, RECORD)


def test_files_are_hashed_in_full(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 300_000)
    assert hash_file(path) == Digest(hashlib.sha256(b"x" * 300_000).hexdigest(), 300_000)


def test_an_environment_names_interpreter_libc_and_distributions(
    install: Install, site: Path
) -> None:
    install("b", "2")
    install("a", "1")
    known = installed([str(site)])
    fingerprint = json.loads(environment_fingerprint([known["a"], known["b"]], hash_record))
    assert set(fingerprint) == {
        "schema",
        "kind",
        "python",
        "implementation",
        "platform",
        "libc",
        "distributions",
    }
    assert [item["name"] for item in fingerprint["distributions"]] == ["a", "b"]
    assert str(site) not in json.dumps(fingerprint)


def test_a_distribution_is_its_record(install: Install, site: Path) -> None:
    info = install("a")
    before = distribution_fingerprint(installed([str(site)])["a"], hash_record)
    (info / "RECORD").write_text("code.py,sha256=changed,3\n")
    assert distribution_fingerprint(installed([str(site)])["a"], hash_record) != before


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "bin/cc").write_text("cc")
    (home / "bin/cc").chmod(0o755)
    (home / "lib/x").write_text("x")
    (home / "lib/link").symlink_to("x")
    return home


def test_a_tree_is_the_same_elsewhere(tree: Path) -> None:
    before = tree_fingerprint(tree_listing(tree, (), hash_file))
    moved = tree.rename(tree.parent / "moved")
    assert tree_fingerprint(tree_listing(moved, (), hash_file)) == before
    assert json.loads(before)["files"] == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda home: (home / "lib/x").write_text("y"),
        lambda home: (home / "lib/new").write_text(""),
        lambda home: (home / "lib/x").rename(home / "lib/y"),
        lambda home: (home / "lib/x").chmod(0o755),
        lambda home: ((home / "lib/link").unlink(), (home / "lib/link").symlink_to("y")),
    ],
)
def test_any_change_of_a_tree_shows(tree: Path, change: Callable[[Path], object]) -> None:
    before = tree_fingerprint(tree_listing(tree, (), hash_file))
    change(tree)
    assert tree_fingerprint(tree_listing(tree, (), hash_file)) != before


def test_only_the_named_parts_of_a_tree_count(tree: Path) -> None:
    before = tree_fingerprint(tree_listing(tree, ("bin/cc",), hash_file))
    (tree / "lib/x").write_text("y")
    assert tree_fingerprint(tree_listing(tree, ("bin/cc",), hash_file)) == before
    (tree / "bin/cc").write_text("c++")
    assert tree_fingerprint(tree_listing(tree, ("bin/cc",), hash_file)) != before


@pytest.mark.parametrize("part", ["lib/link", "usr/lib/x", "usr/lib"])
def test_a_part_that_is_a_link_counts_by_what_it_leads_to(tree: Path, part: str) -> None:
    (tree / "usr").mkdir()
    (tree / "usr/lib").symlink_to("../lib")
    before = tree_listing(tree, (part,), hash_file)
    assert b'["lib/x","file",' in before
    (tree / "lib/x").write_text("y")
    assert tree_listing(tree, (part,), hash_file) != before


def test_what_links_in_a_part_lead_to_counts_too(tree: Path) -> None:
    (tree / "libexec").mkdir()
    (tree / "libexec/ld").symlink_to("../lib/link")
    (tree / "bin/ld").symlink_to("../libexec/ld")
    (tree / "bin/loop").symlink_to("loop")
    before = tree_listing(tree, ("bin", "bin/loop"), hash_file)
    assert [entry[0] for entry in json.loads(before)] == ["bin/cc", "bin/ld", "bin/loop", "lib/x"]
    (tree / "lib/x").write_text("y")
    assert tree_listing(tree, ("bin", "bin/loop"), hash_file) != before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "it is neither file, directory nor link"),
        (lambda path: Path(f"{path}\udcff").touch(), "its name is not UTF-8"),
        (lambda path: path.symlink_to("\udcff"), "its name is not UTF-8"),
    ],
)
def test_what_cannot_be_listed_is_named(
    tree: Path, make: Callable[[Path], object], message: str
) -> None:
    make(tree / "odd")
    with pytest.raises(OSError, match=message) as caught:
        tree_listing(tree, (), hash_file)
    assert str(tree / "odd") in str(caught.value.filename)


def test_a_part_that_leads_out_of_the_tree_counts_as_a_link(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("z")
    (tree / "bin/ld").symlink_to("../../outside")
    expected = b'[["bin/ld","link","../../outside"]]'
    assert tree_listing(tree, ("bin/ld",), hash_file).strip() == expected


def test_a_memory_reads_each_record_once(install: Install, tmp_path: Path) -> None:
    record = install("a", record=RECORD) / "RECORD"
    file = tmp_path / "cache" / "records.json"
    memory = RecordMemory(file, hash_file, SEAL)
    digest = memory(record)
    assert digest == hash_record(record)
    memory.save()
    whole, inode = hash_file(record), file.stat().st_ino
    record.unlink()
    again = RecordMemory(file, lambda _: whole, SEAL)
    assert again(record) == digest
    again.save()
    assert file.stat().st_ino == inode  # nothing was learnt, so nothing was written


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": 1}', b'{"a": ["x", 1]}'])
def test_a_damaged_memory_costs_nothing_but_time(
    install: Install, tmp_path: Path, content: bytes
) -> None:
    record = install("a", record=RECORD) / "RECORD"
    file = tmp_path / "records.json"
    file.write_bytes(content)
    memory = RecordMemory(file, hash_file, SEAL)
    assert memory(record) == hash_record(record)
    memory.save()
    assert RecordMemory(file, hash_file, SEAL)(record) == hash_record(record)
