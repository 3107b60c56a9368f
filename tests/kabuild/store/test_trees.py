"""Directories from anyone: what would be a billion paths is refused before it is walked."""

from __future__ import annotations

import time

import pytest

from kabuild.base.canonical import message_field, repeated_field, text_field
from kabuild.model.digest import Digest
from kabuild.store.merkle import Directory, FileNode, build
from kabuild.store.trees import Trees, parse_tree, read_directory

LEAF = Digest.of(b"leaf")


def doubled(levels: int, *, width: int = 2) -> tuple[Digest, dict[Digest, bytes]]:
    """A directory that names the same one twice, and so on downwards; some kB in all."""
    messages: dict[Digest, bytes] = {}
    wire = repeated_field(1, [FileNode(LEAF).to_wire("file")])
    for _ in range(levels):
        below = Digest.of(wire)
        messages[below] = wire
        names = (text_field(1, f"d{n}") + message_field(2, below.to_wire()) for n in range(width))
        wire = repeated_field(2, names)
    messages[Digest.of(wire)] = wire
    return Digest.of(wire), messages


@pytest.mark.parametrize(("levels", "width"), [(40, 2), (200, 2), (5, 100)])
def test_a_tree_that_names_itself_again_and_again_is_refused_at_once(
    levels: int, width: int
) -> None:
    root, messages = doubled(levels, width=width)
    wires = [messages[root], *(wire for digest, wire in messages.items() if digest != root)]
    tree = message_field(1, wires[0]) + repeated_field(2, wires[1:])

    began = time.process_time()
    with pytest.raises(ValueError, match="too many paths"):
        read_directory(root, messages.__getitem__)
    with pytest.raises(ValueError, match="too many paths"):
        parse_tree(tree)
    assert time.process_time() - began < 5


def test_one_that_names_itself_a_few_times_is_read() -> None:
    root, messages = doubled(8)
    assert len([*read_directory(root, messages.__getitem__).walk()]) == 256


def test_one_that_is_nested_too_deeply_is_refused() -> None:
    root, messages = doubled(300, width=1)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_directory(root, messages.__getitem__)


def test_what_is_read_again_and_again_is_counted_every_time() -> None:
    directory = build([(f"file{n}", FileNode(LEAF)) for n in range(100)])
    trees = Trees({directory.digest: directory.wire}.__getitem__, most=100 * 71 * 3)
    for _ in range(3):
        assert trees.read(directory.digest) == directory
    with pytest.raises(ValueError, match="too many paths"):
        trees.read(directory.digest)


def test_a_name_stands_once() -> None:
    node = FileNode(LEAF).to_wire("x")
    wire = repeated_field(1, [node, node])
    with pytest.raises(ValueError, match="twice"):
        read_directory(Digest.of(wire), {Digest.of(wire): wire}.__getitem__)
    assert Directory({"x": FileNode(LEAF)}, {}) == read_directory(
        Digest.of(repeated_field(1, [node])), lambda _: repeated_field(1, [node])
    )
