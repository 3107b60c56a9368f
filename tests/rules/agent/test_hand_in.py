"""Only editable files come back, and nothing that is no kernel's source."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hand_in
import pytest
from compile_gate import refusal_in
from hand_in import MOST_BYTES, RefusedError, check_text, read_editable, take
from kernel_source import Refusal, check_handed_in

KERNEL = "double.hip"


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.mkdir()


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


def _zero(path: Path) -> None:
    path.write_bytes(b"int\0main")


def _latin(path: Path) -> None:
    path.write_bytes(b"\xe9")


def _nothing(_: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_link, "symbolic link"),
        (_fifo, "not a regular file"),
        (_directory, "not a regular file"),
        (_large, f"has {MOST_BYTES + 1} bytes"),
        (_zero, "byte 3 is zero"),
        (_latin, "not UTF-8"),
        (_nothing, "it is gone"),
    ],
)
def test_what_is_no_source_is_refused_and_no_gate_accepts_what_stands_for_it(
    tmp_path: Path, make: object, why: str
) -> None:
    assert callable(make)
    make(tmp_path / KERNEL)

    found = take(tmp_path, [KERNEL], [])

    assert why in found.refused[KERNEL]
    assert found.files[KERNEL].startswith(b"// double.hip was not handed in: ")


def test_compile_gates_say_why_a_file_was_refused(tmp_path: Path) -> None:
    for name in (KERNEL, "double.py"):
        (tmp_path / name).symlink_to("/etc/passwd")
    stand_ins = take(tmp_path, [KERNEL, "double.py"], [])
    made = tmp_path / "made"
    made.mkdir()
    for name, data in stand_ins.files.items():
        (made / name).write_bytes(data)

    said = refusal_in(made / KERNEL)
    with pytest.raises(Refusal) as refused:
        check_handed_in(made / "double.py")

    assert said == "the agent's double.hip was refused: it is a symbolic link"
    assert refused.value.summary == said.replace(".hip", ".py")


def test_a_kernel_comes_back_and_what_lies_beside_it_is_listed(tmp_path: Path) -> None:
    (tmp_path / KERNEL).write_text("// ours\n")
    (tmp_path / "BRIEF.md").write_text("given")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.o").write_bytes(b"\0")
    (tmp_path / "away").symlink_to("/usr")

    found = take(tmp_path, [KERNEL], ["BRIEF.md"])

    assert found.files == {KERNEL: b"// ours\n"}
    assert not found.refused
    assert found.dropped == ("away", "notes.txt", "sub/a.o")
    assert found.dropped_count == 3


def test_the_list_of_what_is_dropped_is_bounded_and_its_length_is_not(tmp_path: Path) -> None:
    (tmp_path / KERNEL).write_text("")
    for number in range(250):
        (tmp_path / f"{number}.txt").touch()

    found = take(tmp_path, [KERNEL], [])

    assert (len(found.dropped), found.dropped_count) == (200, 250)


def test_neither_a_deep_tree_nor_closed_directories_stop_the_hand_in(tmp_path: Path) -> None:
    """What an agent leaves is its result, never the machine's failure."""
    (tmp_path / KERNEL).write_text("// ours")
    deep = os.open(tmp_path, os.O_RDONLY)
    for name in (*["d"] * 1100, *["e" * 200] * 12):  # beyond recursion, then beyond a path
        os.mkdir(name, dir_fd=deep)
        inner = os.open(name, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    tmp_path.chmod(0)

    found = take(tmp_path, [KERNEL], [])

    assert found.files == {KERNEL: b"// ours"}
    assert len(found.dropped) == 1
    assert found.dropped[0].startswith("d/d/")
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


def test_any_number_of_directories_is_looked_through_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions of them would outlast the session, which then had no result to be judged by."""
    monkeypatch.setattr(hand_in, "_MOST_COUNTED", 50)
    looks: list[Path] = []
    scandir = os.scandir

    def counted(path: Path) -> Iterator[os.DirEntry[str]]:
        looks.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    (tmp_path / KERNEL).write_text("// ours")
    for number in range(30):
        for inner in range(10):
            (tmp_path / f"{number}/{inner}").mkdir(parents=True)

    found = take(tmp_path, [KERNEL], [])

    assert found.files == {KERNEL: b"// ours"}
    assert len(looks) == 50


@pytest.mark.parametrize("path", ["../double.hip", "/etc/passwd", "a/../../b", ""])
def test_a_path_that_leaves_the_workspace_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(RefusedError, match="leaves the workspace"):
        read_editable(tmp_path, path)


def test_no_link_on_the_way_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "k.hip").write_text("// ours")
    (tmp_path / "linked").symlink_to("real")

    assert read_editable(tmp_path, "real/k.hip") == b"// ours"
    with pytest.raises(RefusedError, match="link"):
        read_editable(tmp_path, "linked/k.hip")


def test_the_digest_depends_on_paths_and_contents(tmp_path: Path) -> None:
    digests = set()
    for name, text in (("a.hip", "x"), ("a.hip", "y"), ("b.hip", "x")):
        (tmp_path / name).write_text(text)
        digests.add(take(tmp_path, [name], []).digest)

    assert len(digests) == 3


def test_a_text_may_be_as_long_as_a_file() -> None:
    assert check_text(b"a" * MOST_BYTES)
    with pytest.raises(RefusedError):
        check_text(b"a" * (MOST_BYTES + 1))
