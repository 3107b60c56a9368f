"""The lock: what is written is read, equal entries are equal bytes, and nonsense is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.base.errors import DriftError, LoadError, Position, Reason, ToolchainError
from kabuild.model.label import Label
from kabuild.toolchain.declaration import Declaration, Environment, Fetched, Layout, LocalTree
from kabuild.toolchain.fetched import fingerprint, locked_tree
from kabuild.toolchain.lock import (
    Lock,
    LockedFile,
    LockEntry,
    declared,
    is_current,
    read_lock,
    read_locks,
    render,
    write_lock,
)
from kabuild.toolchain.machine import ANY, this_machine

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
TEXTS = st.lists(TEXT, max_size=4).map(tuple)
FILES = st.builds(
    LockedFile, TEXT, TEXT, st.sampled_from(["0" * 64, "ab" * 32]), st.integers(0, 1 << 40)
)
ENTRIES = st.builds(
    LockEntry,
    TEXT,
    TEXTS,
    st.dictionaries(
        st.sampled_from(["any", "linux-x86_64"]),
        st.lists(FILES, min_size=1, max_size=3, unique_by=lambda file: file.name).map(
            lambda files: tuple(sorted(files))
        ),
    ),
    TEXT,
    TEXTS,
    TEXT,
    TEXTS,
)
LABELS = st.text("abc/", min_size=1, max_size=5).map("//{}:x".format)
PIN = Fetched("pypi", ("a==1",), Layout("p", ("bin",), {"l": "bin"}))
FILE = LockedFile("a-1-py3-none-any.whl", "a==1", "0" * 64, 10)


def declaration(pin: Fetched | LocalTree | Environment = PIN) -> Declaration:
    return Declaration(Label("t", "t"), "r", pin, Position("t/BUILD.toml", 1))


def lock_of(**files: LockedFile) -> Lock:
    machines = {name.replace("__", "-"): (file,) for name, file in files.items()}
    return Lock({"//t:t": LockEntry("pypi", declared(declaration()), machines)})


@given(st.dictionaries(LABELS, ENTRIES, max_size=2))
@settings(max_examples=20, deadline=None)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, entries: dict[str, LockEntry]
) -> None:
    path = tmp_path_factory.mktemp("lock") / "lock.toml"
    write_lock(path, entries)

    lock = read_lock(path)

    assert lock.entries == entries
    assert render(lock.entries) == path.read_text()
    lines = path.read_text().splitlines()
    for label, position in lock.positions.items():
        assert f'["{label}"' in lines[position.line - 1]


def test_no_lock_is_an_empty_one(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "none") == Lock()


@pytest.mark.parametrize(
    "text",
    [
        "schema = 2\n",
        "",
        "schema = 1\n[broken\n",
        'schema = 1\n["//a:b"]\n',
        'schema = 1\n"//a:b" = 3\n',
        'schema = 1\n["//a:b".files.any]\n"x" = { size = 1, sha256 = "../../etc/passwd" }\n',
    ],
)
def test_locks_that_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lock.toml"
    path.write_text(text)

    with pytest.raises(LoadError) as caught:
        read_lock(path)

    assert caught.value.reason is Reason.BAD_LOCK
    assert "remove it and run: kabuild toolchain lock" in caught.value.hint


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"", 0, "it is no lock, or was cut off: it has no 'schema = 1'"),
        (b"schema = 2\n", 0, "another version of kabuild wrote it: its schema is 2, not 1"),
        (b"schema = 1\nfoo = [\n\n", 2, "not TOML: invalid value"),
        (b"schema = 1\n[broken\n", 2, "not TOML: "),
        (b"schema = 1\nx = '\xff'\n", 2, "byte 0xff is not UTF-8"),
        (b"x = " + b"[" * 9999, 0, "nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_lock_is_said_with_its_line(
    tmp_path: Path, data: bytes, line: int, problem: str
) -> None:
    path = tmp_path / "lock.toml"
    path.write_bytes(data)

    with pytest.raises(LoadError) as caught:
        read_lock(path)

    assert problem in caught.value.message
    assert caught.value.position == Position("toolchains/lock.toml", line)


def test_an_entry_that_is_incomplete_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "lock.toml"
    path.write_text('schema = 1\n\n["//a:b"]\nkind = "deb"\n\n["//a:c"]\ntree = ""\n')

    with pytest.raises(LoadError, match="its entry for //a:c is incomplete: 'kind'") as caught:
        read_lock(path)

    assert caught.value.position == Position("toolchains/lock.toml", 6)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("home = 3", "'home' is int, expected a string"),
        ("home = 2020-01-01", "'home' is date, expected a string"),
        ('home = "a\\u0000b"', "'home' is 'a.*, expected a string"),
        ('paths = "bin"', "'paths' is 'bin', expected a list of strings"),
        ('paths = ["bin", ["lib"]]', "'paths' is list, expected a string"),
        ("tree = true", "'tree' is True, expected a string"),
        ("declared = [1]", "'declared' is int, expected a string"),
        ("files = { all = { x = { sha256 = 'DIGEST', size = 'much' } } }", "expected bytes"),
        ("files = { all = { x = { sha256 = 'DIGEST', size = -1 } } }", "expected bytes"),
        ("files = { all = { x = { sha256 = 'DIGEST', size = 1, pin = [] } } }", "'pin' is list"),
        ("files = { all = { x = { sha256 = 7, size = 1 } } }", "'sha256' is int"),
        ("files = [1]", "no attribute 'items'"),
    ],
)
def test_an_entry_of_wrong_types_is_named_with_its_line(
    tmp_path: Path, line: str, problem: str
) -> None:
    path = tmp_path / "lock.toml"
    text = f'schema = 1\n\n["//a:b"]\nkind = "local"\n{line}\n'
    path.write_text(text.replace("DIGEST", "3f" * 32))

    with pytest.raises(LoadError, match=problem) as caught:
        read_lock(path)

    assert caught.value.position == Position("toolchains/lock.toml", 3)


def test_the_workspaces_entry_comes_first(tmp_path: Path) -> None:
    for name, kind in (("mine", "deb"), ("shipped", "pypi")):
        path = tmp_path / name / "toolchains" / "lock.toml"
        write_lock(path, {"//t:t": LockEntry(kind), f"//{name}": LockEntry(kind)})

    lock = read_locks(tmp_path / "mine", tmp_path / "shipped")

    assert {label: entry.kind for label, entry in lock.entries.items()} == {
        "//t:t": "deb",
        "//mine": "deb",
        "//shipped": "pypi",
    }


def test_an_entry_is_of_one_declaration() -> None:
    entry = LockEntry("pypi", declared(declaration()))

    assert is_current(entry, declaration())
    assert not is_current(entry, declaration(replace(PIN, requirements=("a==2",))))
    assert not is_current(entry, declaration(replace(PIN, machines=("linux-riscv64",))))
    assert is_current(entry, declaration(replace(PIN, layout=Layout()))), "no file changes"


def test_an_archives_url_may_change_and_its_digest_not() -> None:
    pin = Fetched("archive", ("https://a/x.tar.gz",), machines=(ANY,), sha256="0" * 64)
    entry = LockEntry("archive", declared(declaration(pin)))

    moved = replace(pin, requirements=("https://b/x.tar.gz",))
    assert is_current(entry, declaration(moved))
    assert not is_current(entry, declaration(replace(pin, sha256="1" * 64)))


def test_the_fingerprint_is_of_content_and_layout_alone() -> None:
    files = (FILE,)

    assert fingerprint(PIN, files) == fingerprint(PIN, (replace(FILE, name="b", pin="b==2"),))
    others = [
        fingerprint(PIN, (replace(FILE, sha256="1" * 64),)),
        fingerprint(replace(PIN, layout=Layout()), files),
        fingerprint(replace(PIN, layout=replace(PIN.layout, links={})), files),
        fingerprint(replace(PIN, kind="deb"), files),
    ]
    assert len({fingerprint(PIN, files), *others}) == 5


def test_the_files_of_this_machine_are_taken() -> None:
    mine = {this_machine().replace("-", "__"): FILE, "linux__other": replace(FILE, name="other")}

    assert locked_tree(declaration(), PIN, lock_of(**mine)).files == (FILE,)
    assert locked_tree(declaration(), PIN, lock_of(any=FILE)).files == (FILE,)
    with pytest.raises(ToolchainError, match="not for this machine"):
        locked_tree(declaration(), PIN, lock_of(linux__other=FILE))


def test_what_is_not_locked_is_not_fetched() -> None:
    with pytest.raises(DriftError) as caught:
        locked_tree(declaration(), PIN, Lock())

    assert caught.value.reason is Reason.NOT_LOCKED
    assert caught.value.hint == "kabuild toolchain lock //t"
