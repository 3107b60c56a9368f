"""What every ActionCache must do: on disk, in memory, and later remote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import ActionCache, Cas, DiskActionCache, DiskCas
from kabuild.store.scratch import Scratch
from tests.testkit.seal import SEAL
from tests.testkit.store import MemoryActionCache, MemoryCas

KEY = Digest.of(b"an action")


class Subject:
    """An ActionCache with its Cas, and ways to spoil either behind its back."""

    def __init__(
        self,
        cache: ActionCache,
        cas: Cas,
        raw: Callable[[], bytes | None],
        spoil: Callable[[bytes], object],
        lose: Callable[[Digest], object],
    ):
        self.cache = cache
        self.cas = cas
        self.raw = raw
        self.spoil = spoil
        self.lose = lose
        self.warnings: list[str] = []


@pytest.fixture(params=["disk", "memory"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    warnings: list[str] = []
    if request.param == "memory":
        cas = MemoryCas()
        memory = MemoryActionCache(cas, warnings.append)
        made = Subject(
            memory,
            cas,
            lambda: memory.entries.get(KEY.hash),
            lambda data: memory.entries.update({KEY.hash: data}),
            lambda digest: cas.blobs.__delitem__(digest.hash),
        )
        made.warnings = warnings
        yield made
        return
    scratch = Scratch(tmp_path / "tmp")
    disk_cas = DiskCas(tmp_path, scratch)
    disk = DiskActionCache(
        tmp_path,
        scratch,
        disk_cas,
        SEAL,
        warn=warnings.append,
        distrusted=lambda key, _: warnings.append(key),
    )
    entry = Path(disk.path_of(KEY))
    made = Subject(
        disk,
        disk_cas,
        lambda: entry.read_bytes() if entry.exists() else None,
        entry.write_bytes,
        lambda digest: Path(disk_cas.path_of(digest)).unlink(),
    )
    made.warnings = warnings
    yield made
    scratch.close()


def rich_result(cas: Cas) -> ActionResult:
    """Files and directories, nested and executable, with both streams."""
    return ActionResult(
        exit_code=3,
        files=(
            OutputFile("tree/a", cas.put(b"a")),
            OutputFile("tree/deep/b", cas.put(b"b"), executable=True),
            OutputFile("tree/deep/c", cas.put(b"a")),
            OutputFile("verdict.json", cas.put(b"{}")),
        ),
        stdout=cas.put(b"out"),
        stderr=cas.put(b"err"),
        seconds=1.5,
        directories=("tree",),
    )


def test_an_unknown_key_is_a_miss(subject: Subject) -> None:
    assert subject.cache.get(KEY) is None


def test_a_result_comes_back_whole(subject: Subject) -> None:
    result = rich_result(subject.cas)

    subject.cache.put(KEY, result)

    found = subject.cache.get(KEY)
    assert found == result
    assert found is not None
    assert found.seconds == 1.5


@given(
    exit_code=st.integers(-128, 255),
    names=st.sets(st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1)),
    seconds=st.floats(0, 1e5),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_result_comes_back(
    subject: Subject, exit_code: int, names: set[str], seconds: float
) -> None:
    files = tuple(
        OutputFile(name, subject.cas.put(name.encode()), executable=len(name) % 2 == 0)
        for name in sorted(names - {".", ".."})
    )
    result = ActionResult(exit_code, files, seconds=seconds)

    subject.cache.put(KEY, result)

    found = subject.cache.get(KEY)
    assert found == result
    assert found is not None
    assert found.seconds == pytest.approx(seconds, abs=2e-6)


def test_the_last_of_two_results_counts(subject: Subject) -> None:
    first = rich_result(subject.cas)
    subject.cache.put(KEY, first)
    subject.cache.put(KEY, replace(first, exit_code=0))

    found = subject.cache.get(KEY)
    assert found is not None
    assert found.exit_code == 0


def test_a_result_without_its_blobs_is_a_miss(subject: Subject) -> None:
    """Whichever blob is gone, a file of a tree included."""
    result = rich_result(subject.cas)
    blobs = {file.digest for file in result.files} | {result.stdout, result.stderr}
    for blob in blobs:
        assert blob is not None
        subject.cache.put(KEY, rich_result(subject.cas))
        subject.lose(blob)

        assert subject.cache.get(KEY) is None
        assert subject.raw() is None, "the entry is removed"


def test_a_cut_or_spoilt_entry_is_a_miss_and_goes(subject: Subject) -> None:
    """Cut at any byte, it never passes for a shorter result."""
    subject.cache.put(KEY, rich_result(subject.cas))
    whole = subject.raw()
    assert whole
    for cut in range(len(whole)):
        subject.spoil(whole[:cut])
        assert subject.cache.get(KEY) is None, f"cut at byte {cut}"
        assert subject.raw() is None
        assert KEY.hash in subject.warnings[-1] or "damaged" in subject.warnings[-1]
    subject.spoil(b"\xff" * 40)
    assert subject.cache.get(KEY) is None
