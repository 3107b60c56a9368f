"""The disk form of results: REAPI messages in Bazel's layout."""

from __future__ import annotations

import os
import time
from pathlib import Path

from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import DiskActionCache, DiskCas, Store
from kabuild.store.sealed_entry import parts
from tests.testkit.clock import FakeClock
from tests.testkit.reapi import parse

KEY = Digest.of(b"an action")


def test_an_entry_is_an_action_result_of_the_api(tmp_path: Path) -> None:
    """Read with real protobuf classes: nothing is lost, and nothing but the seal is ours alone."""
    with Store.open(tmp_path) as store:
        cas, clock = store.cas, FakeClock(1_700_000_010.0)
        file, tool = cas.put(b"file"), cas.put(b"tool")
        result = ActionResult(
            exit_code=-1,
            files=(
                OutputFile("tree/deep/tool", tool, executable=True),
                OutputFile("tree/file", file),
                OutputFile("verdict.json", file),
            ),
            stdout=file,
            seconds=2.25,
            directories=("tree",),
        )
        cache = DiskActionCache(tmp_path, store.scratch, cas, store.seal, clock=clock)

        cache.put(KEY, result)

        entry = tmp_path / "ac" / KEY.hash[:2] / KEY.hash
        message = parse("ActionResult", parts(entry.read_bytes())[0])
        tree = parse("Tree", cas.get(_digest(message.output_directories[0].tree_digest)))

    assert message.exit_code == -1
    assert [(f.path, f.digest.hash, f.is_executable) for f in message.output_files] == [
        ("out/verdict.json", file.hash, False)
    ]
    assert [d.path for d in message.output_directories] == ["out/tree"]
    assert [(f.name, f.digest.hash) for f in tree.root.files] == [("file", file.hash)]
    assert [d.name for d in tree.root.directories] == ["deep"]
    assert [(f.name, f.is_executable) for f in tree.children[0].files] == [("tool", True)]
    assert message.stdout_digest.hash == file.hash
    assert not message.HasField("stderr_digest")
    times = message.execution_metadata
    assert times.execution_completed_timestamp.seconds == 1_700_000_010
    assert times.execution_start_timestamp.seconds == 1_700_000_007
    assert times.execution_start_timestamp.nanos == 750_000_000


def test_a_use_is_noted_for_the_collector(tmp_path: Path) -> None:
    """Both the entry and its blobs, or the collector would part them."""
    with Store.open(tmp_path) as store:
        blob = store.cas.put(b"blob")
        store.actions.put(KEY, ActionResult(0, (OutputFile("x", blob),)))
        paths = [tmp_path / "ac" / KEY.hash[:2] / KEY.hash, tmp_path / "cas" / blob.hash[:2]]
        paths[1] /= blob.hash
        for path in paths:
            os.utime(path, (1, 1))

        assert store.actions.get(KEY)

    assert all(path.stat().st_mtime > time.time() - 1000 for path in paths)


def test_a_damaged_tree_is_a_miss(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        blob = store.cas.put(b"blob")
        result = ActionResult(0, (OutputFile("d/x", blob),), directories=("d",))
        store.actions.put(KEY, result)
        assert store.actions.get(KEY) == result
        assert isinstance(store.cas, DiskCas)
        path = tmp_path / "ac" / KEY.hash[:2] / KEY.hash
        entry = parse("ActionResult", parts(path.read_bytes())[0])
        tree = Path(store.cas.path_of(_digest(entry.output_directories[0].tree_digest)))
        size = tree.stat().st_size
        tree.chmod(0o644)
        tree.write_bytes(b"\0" * size)

        assert store.actions.get(KEY) is None
        assert not tree.exists()


def _digest(message: object) -> Digest:
    return Digest(message.hash, message.size_bytes)  # type: ignore[attr-defined]


def test_an_entry_that_is_no_file_counts_as_absent(tmp_path: Path) -> None:
    """Also one that nobody would ever finish reading."""
    with Store.open(tmp_path) as store:
        result = ActionResult(exit_code=0, files=(OutputFile("x", store.cas.put(b"x")),))
        path = tmp_path / "ac" / KEY.hash[:2] / KEY.hash
        path.parent.mkdir(parents=True)
        for make in (os.mkfifo, os.mkdir, lambda where: where.symlink_to("/dev/zero")):
            make(path)
            assert store.actions.get(KEY) is None
            store.actions.put(KEY, result)
            assert store.actions.get(KEY) == result
            path.unlink()
