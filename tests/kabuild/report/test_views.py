"""Views follow the last build: what it made is shown, and nothing that contradicts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.errors import Reason, UsageError
from kabuild.model.digest import Digest
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.result import ActionResult, Outcome, OutputFile, Settled
from kabuild.report.views import last_key, shown_at, view_of, write_views
from kabuild.store import Store
from tests.testkit.actions import command

LABEL = Label("tasks/softmax", "softmax.compile")
DATA = (b"one", b"two")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store that holds ``DATA``."""
    with Store.open(tmp_path / "store") as store:
        for data in DATA:
            store.cas.put(data)
        yield store


def result_with(path: str, data: bytes) -> Settled:
    """A settled action with one output file."""
    files = (OutputFile(path, Digest.of(data)),)
    return Settled(LABEL, Outcome.DONE, Digest.of(data), ActionResult(0, files))


def test_views_show_outputs_and_follow_changes(tmp_path: Path) -> None:
    blobs = {Digest.of(data): data for data in (b"old", b"new")}
    calls: list[Path] = []

    def link(digest: Digest, path: Path) -> None:
        calls.append(path)
        path.write_bytes(blobs[digest])

    folder = view_of(tmp_path, LABEL)
    write_views(tmp_path, [result_with("a/kernel.so", b"old")], link)
    assert (folder / "a/kernel.so").read_bytes() == b"old"

    write_views(tmp_path, [result_with("a/kernel.so", b"old")], link)
    assert len(calls) == 1

    write_views(tmp_path, [result_with("kernel.so", b"new")], link)
    assert (folder / "kernel.so").read_bytes() == b"new"
    assert not (folder / "a").exists()


@pytest.mark.parametrize(
    "label", [Label("@kb/../../x", "x"), Label("/etc", "x"), Label("a", "../../x"), Label("", "..")]
)
def test_nothing_is_shown_outside_of_out(tmp_path: Path, label: Label) -> None:
    out = tmp_path / "ws/out"

    with pytest.raises(UsageError, match="would lie outside of out/") as caught:
        write_views(out, [replace(result_with("x", b"new"), label=label)], lambda *_: None)

    assert caught.value.reason is Reason.BAD_LABEL
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("label", [Label("@kb/a/b", "b.perf#2"), Label("", "x"), LABEL])
def test_labels_of_any_root_are_shown_in_out(tmp_path: Path, label: Label) -> None:
    shown = view_of(tmp_path, label)

    assert shown.resolve().is_relative_to(tmp_path)
    assert shown.name == label.name


def test_what_a_killed_build_left_half_done_is_removed(tmp_path: Path) -> None:
    """Half of a mark, of a file, and of the removal of the view."""
    folder = view_of(tmp_path, LABEL)
    folder.mkdir(parents=True)
    (folder / "..key.0123456789ab.tmp").write_text("half")
    removed = folder.with_name(f".{folder.name}.0123456789ab.tmp")
    (removed / "inner").mkdir(parents=True)
    other = folder.with_name(".softmax.perf.0123456789ab.tmp")
    other.mkdir()

    write_views(tmp_path, [result_with("v", b"new")], lambda _, path: path.touch())

    assert (folder / "v").exists()
    assert list(tmp_path.rglob("*.tmp")) == [other]


def test_a_view_without_its_mark_is_written_again(tmp_path: Path, store: Store) -> None:
    """A build was killed between a view's files and its mark, or its disk was full."""
    items = [replace(result_with("v", data), label=Label("tasks", data.decode())) for data in DATA]
    first = view_of(tmp_path, items[0].label)
    (first / "inner").mkdir(parents=True)
    (first / "v").write_text("left by a killed build")

    write_views(tmp_path, items, store.cas.link_to)
    (first / ".key").unlink()
    write_views(tmp_path, items, store.cas.link_to)

    assert [(view_of(tmp_path, item.label) / "v").read_bytes() for item in items] == list(DATA)
    assert last_key(tmp_path, items[0].label) == items[0].key
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_view_that_cannot_be_written_costs_no_other(tmp_path: Path, store: Store) -> None:
    items = [replace(result_with("v", data), label=Label("tasks", data.decode())) for data in DATA]
    (view_of(tmp_path, items[0].label) / "v").mkdir(parents=True)

    with pytest.raises(IsADirectoryError) as caught:
        write_views(tmp_path, items, store.cas.link_to)

    assert str(view_of(tmp_path, items[0].label)) in str(caught.value)
    assert (view_of(tmp_path, items[1].label) / "v").read_bytes() == DATA[1]
    assert last_key(tmp_path, items[0].label) is None
    assert not list(tmp_path.rglob("*.tmp"))


def test_views_show_what_was_measured_last(tmp_path: Path) -> None:
    """What is taken again, or by another store, has other bytes under the same key."""
    blobs = {Digest.of(data): data for data in (b"old", b"new")}
    key = Digest.of(b"the key")

    def put(digest: Digest, path: Path) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(blobs[digest])

    for data in blobs.values():
        item = replace(result_with("samples.json", data), key=key)
        write_views(tmp_path, [item], put)

        folder = view_of(tmp_path, item.label)
        assert (folder / "samples.json").read_bytes() == data
        assert last_key(tmp_path, item.label) == key


@pytest.mark.parametrize(
    ("outcome", "key", "before", "stays"),
    [
        (Outcome.SKIPPED, None, b"old", False),
        (Outcome.INFRA, b"old", b"old", False),
        (Outcome.FAILED, None, b"old", False),
        (Outcome.CANCELLED, b"old", b"old", True),
        (Outcome.CANCELLED, b"new", b"old", False),
        (Outcome.CANCELLED, None, b"old", True),
        (Outcome.CANCELLED, None, b"new", False),
    ],
)
def test_views_of_what_came_to_nothing(
    tmp_path: Path, outcome: Outcome, key: bytes | None, before: bytes, *, stays: bool
) -> None:
    """None stays that contradicts the build; what a stopped one never reached is left alone."""
    needed = command("needed")
    graph = ActionGraph.of([needed, command("then", requires=[needed])])
    first, second = (replace(result_with("v", b"old"), label=action.label) for action in graph)

    def link(_: Digest, path: Path) -> None:
        path.touch()

    other = replace(first, label=Label("tasks", "unconcerned"))
    write_views(tmp_path, [first, second, other], link, graph)
    first = replace(first, key=Digest.of(before))
    second = Settled(second.label, outcome, Digest.of(key) if key else None)
    write_views(tmp_path, [first, second], link, graph)

    assert (view_of(tmp_path, second.label) / "v").exists() is stays
    assert shown_at(tmp_path, second) is None
    assert (view_of(tmp_path, other.label) / "v").exists()
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("path", ["../evil", "/etc/passwd", "a/../../evil"])
def test_views_never_leave_out(tmp_path: Path, path: str) -> None:
    """A result from a shared cache is not trusted to name paths."""
    linked: list[Path] = []
    write_views(tmp_path, [result_with(path, b"x")], lambda _, target: linked.append(target))

    assert linked == []
