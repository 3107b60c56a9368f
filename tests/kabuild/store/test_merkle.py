"""The messages that keys are made of, against real protobuf classes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.canonical import message_field
from kabuild.model.digest import EMPTY, Digest
from kabuild.store import merkle, trees
from kabuild.store.merkle import Directory, FileNode, build
from tests.testkit.reapi import parse

NAMES = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=4)
NODES = st.builds(
    lambda data, executable: FileNode(Digest.of(data), executable),
    st.binary(max_size=3),
    st.booleans(),
)


def tidy(paths: dict[str, FileNode]) -> dict[str, FileNode]:
    """Only valid paths, none of them below another."""
    valid = {p: n for p, n in paths.items() if not set(p.split("/")) & {".", ".."}}
    return {
        p: n for p, n in valid.items() if not any(q.startswith(f"{p}/") for q in valid if q != p)
    }


TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=4).map("/".join), NODES, max_size=12
).map(tidy)


@given(tree=TREES, seed=st.integers())
def test_a_tree_depends_on_content_alone(tree: dict[str, FileNode], seed: int) -> None:
    """Whatever the order of its entries, equal trees have equal bytes."""
    entries = list(tree.items())
    random.Random(seed).shuffle(entries)

    assert build(entries).wire == build(tree.items()).wire
    assert dict(build(entries).walk()) == tree


@given(tree=TREES)
def test_protobuf_reads_directories_and_they_are_canonical(tree: dict[str, FileNode]) -> None:
    for directory in build(tree.items()).all_directories():
        message = parse("Directory", directory.wire)
        for nodes in (message.files, message.directories):
            names = [node.name for node in nodes]
            assert names == sorted(set(names)), "code-point order, each once"
        assert {f.name: f.digest.hash for f in message.files} == {
            name: node.digest.hash for name, node in directory.files.items()
        }


@given(tree=TREES)
def test_a_tree_message_holds_every_directory_once(tree: dict[str, FileNode]) -> None:
    root = build(tree.items())

    message = parse("Tree", root.tree_message())

    children = [child.SerializeToString(deterministic=True) for child in message.children]
    assert len(set(children)) == len(children)
    expected = [directory.wire for directory in root.all_directories()]
    assert [message.root.SerializeToString(deterministic=True), *children] == expected
    assert trees.parse_tree(root.tree_message()) == root


@given(tree=TREES, other=NODES)
def test_any_change_changes_the_digest(tree: dict[str, FileNode], other: FileNode) -> None:
    root = build(tree.items())
    for path, node in tree.items():
        if node != other:
            assert build({**tree, path: other}.items()).digest != root.digest
        without = {p: n for p, n in tree.items() if p != path}
        assert build(without.items()).digest != root.digest


def test_names_sort_by_code_point_not_by_utf16_or_locale() -> None:
    """U+FFFD sorts before U+1F600 by code point, after it by UTF-16 code unit."""
    root = build((name, FileNode(EMPTY)) for name in ("\U0001f600", "\ufffd", "b", "B", "a-b", "a"))

    names = [file.name for file in parse("Directory", root.wire).files]

    assert names == ["B", "a", "a-b", "b", "\ufffd", "\U0001f600"]


def test_directories_are_merged_and_shared_parts_stay_whole() -> None:
    tools = build([("gate.py", FileNode(EMPTY)), ("lib/a.py", FileNode(EMPTY))])
    extra = FileNode(Digest.of(b"x"))

    root = build([("tools", tools), ("tools/lib/b.py", extra), ("tools/lib", tools)])

    assert sorted(path for path, _ in root.walk()) == [
        "tools/gate.py",
        "tools/lib/a.py",
        "tools/lib/b.py",
        "tools/lib/gate.py",
        "tools/lib/lib/a.py",
    ]
    assert tools == build([("gate.py", FileNode(EMPTY)), ("lib/a.py", FileNode(EMPTY))])


@pytest.mark.parametrize(
    "entries",
    [
        [("a", FileNode(EMPTY)), ("a", FileNode(Digest.of(b"1")))],
        [("a", FileNode(EMPTY)), ("a/b", FileNode(EMPTY))],
        [("a/b", FileNode(EMPTY)), ("a", FileNode(EMPTY))],
        [("a", build([("b", FileNode(EMPTY))])), ("a/b/c", FileNode(EMPTY))],
        [("../a", FileNode(EMPTY))],
        [("/a", FileNode(EMPTY))],
        [("", FileNode(EMPTY))],
    ],
)
def test_entries_that_disagree_or_escape_are_refused(
    entries: list[tuple[str, FileNode | Directory]],
) -> None:
    with pytest.raises(ValueError, match="input"):
        build(entries)


def test_an_equal_entry_twice_is_one() -> None:
    assert build([("a", FileNode(EMPTY)), ("a", FileNode(EMPTY))]) == build(
        [("a", FileNode(EMPTY))]
    )


def test_commands_and_actions_are_messages_of_the_api() -> None:
    platform = merkle.platform_message([("z", "2"), ("a", "9"), ("z", "1")])
    command = merkle.command_message(
        ["cc", "", "-o"], {"B": "2", "A": ""}, ["out/z", "out/a"], platform
    )
    action = merkle.action_message(Digest.of(command), EMPTY, 2.5, platform)

    read = parse("Command", command)
    assert list(read.arguments) == ["cc", "", "-o"]
    assert [(v.name, v.value) for v in read.environment_variables] == [("A", ""), ("B", "2")]
    assert list(read.output_paths) == ["out/a", "out/z"]
    assert read.working_directory == ""
    properties = [(p.name, p.value) for p in read.platform.properties]
    assert properties == [("a", "9"), ("z", "1"), ("z", "2")]

    message = parse("Action", action)
    assert message.command_digest.hash == Digest.of(command).hash
    assert message.input_root_digest.hash == EMPTY.hash
    assert (message.timeout.seconds, message.timeout.nanos) == (2, 500_000_000)
    assert message.platform == read.platform
    assert not message.do_not_cache


@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_tree_are_refused(data: bytes) -> None:
    """Nothing but ValueError: an entry of the cache may hold anything."""
    try:
        root = trees.parse_tree(data)
    except ValueError:
        return
    assert isinstance(root, Directory)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b"])
def test_names_that_leave_their_directory_are_refused(name: str) -> None:
    evil = Directory({name: FileNode(EMPTY)}, {})

    with pytest.raises(ValueError, match="bad name"):
        trees.parse_tree(evil.tree_message())


def test_a_tree_that_lacks_a_directory_is_refused() -> None:
    root = build([("a/b", FileNode(EMPTY))])

    with pytest.raises(ValueError, match="lacks directory"):
        trees.parse_tree(message_field(1, root.wire))


def test_a_directory_is_read_from_wherever_its_messages_are() -> None:
    root = build([("a/b/c", FileNode(EMPTY)), ("d", FileNode(EMPTY, executable=True))])
    messages = {directory.digest: directory.wire for directory in root.all_directories()}

    assert trees.read_directory(root.digest, messages.__getitem__) == root
    del messages[root.directories["a"].digest]
    with pytest.raises(ValueError, match="lacks directory"):
        trees.read_directory(root.digest, messages.__getitem__)
