"""A shared cache on a real server of the Remote Execution API, which knows nothing of kabuild."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kabuild.base.errors import Reason, RemoteError
from kabuild.model.digest import Digest
from kabuild.model.result import Outcome
from kabuild.store import Store
from tests.testkit.casd import GET_IT, Casd, program, running
from tests.testkit.fleet import require_fleet

require_fleet()
if program() is None:
    pytest.skip(GET_IT, allow_module_level=True)

from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.loss import Loss
from tests.testkit.machines import READER, WRITER, Machine
from tests.testkit.signers import signer

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def casd(tmp_path: Path) -> Iterator[Casd]:
    with running(tmp_path / "casd") as casd:
        yield casd


@pytest.fixture
def machine(tmp_path: Path, casd: Casd) -> Callable[[str], Machine]:
    endpoint = replace(Endpoint.of(casd.url), retries=1, timeout=20.0)
    return lambda name: Machine(tmp_path / name, endpoint)


@pytest.fixture
def cache(casd: Casd) -> Iterator[RemoteCache]:
    with RemoteCache.connect(Endpoint.of(casd.url)) as cache:
        yield cache


def test_a_second_machine_runs_nothing(machine: Callable[[str], Machine]) -> None:
    one, two = machine("one"), machine("two")

    here = one.build(WRITER).settled
    there = two.build(READER).settled

    assert (one.ran, two.ran, one.warnings + two.warnings) == (6, 0, [])
    for label, item in here.items():
        found = there[label].result
        assert item.result
        assert found
        assert {*item.result.files} == {*found.files}


def test_entries_come_back_byte_for_byte(
    machine: Callable[[str], Machine], cache: RemoteCache
) -> None:
    ended = machine("one").build(WRITER).settled
    keys = [item.key for item in ended.values() if item.key]
    key, (entry,) = keys[0], cache.results.get_many(keys[:1])
    assert entry

    again = signer().sign(key, entry)
    cache.results.put(key, again)

    assert cache.results.get_many([key]) == [again]
    assert READER.trusted.check(key, entry, 1e9) == READER.trusted.check(key, again, 1e9)


def test_a_forged_entry_is_taken_by_the_server_and_not_by_us(
    machine: Callable[[str], Machine], cache: RemoteCache
) -> None:
    ended = machine("one").build(WRITER).settled
    keys = [item.key for item in ended.values() if item.key]
    entries = cache.results.get_many(keys)
    for key, entry in zip(keys, [*entries[1:], entries[0]], strict=True):
        assert entry
        cache.results.put(key, entry)
    two = machine("two")

    two.build(READER)

    assert two.ran == 6
    assert two.warnings == [
        "6 results of the shared cache grpc://cache did not count (6 changed after signing)"
    ]


def test_a_blob_that_the_server_damages_or_loses_is_made_again(
    machine: Callable[[str], Machine], casd: Casd, cache: RemoteCache, tmp_path: Path
) -> None:
    ended = machine("one").build(WRITER).settled
    results = [ended[f"//t:{name}.score"].result for name in "ab"]
    first, second = (result.files[0].digest for result in results if result)
    file = casd.file_of(first.hash)
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    casd.file_of(second.hash).unlink()
    two = machine("two")

    settled = two.build(READER).settled

    assert two.ran == 2
    assert all(item.outcome is Outcome.DONE for item in settled.values())
    assert len(two.warnings) == 1
    assert f"damaged on the server: blob {first}" in two.warnings[0]
    with Store.open(tmp_path / "three") as store:
        assert cache.blobs.fetch([first], store) == {first: Loss.DAMAGED}


def test_large_and_small_blobs_go_there_and_back(cache: RemoteCache, tmp_path: Path) -> None:
    source = random.Random(2)
    with Store.open(tmp_path / "one") as one, Store.open(tmp_path / "two") as two:
        sizes = [0, 1, 4 << 20, 9 << 20, *range(100, 600)]
        digests = [one.cas.put(source.randbytes(size)) for size in sizes]
        gone = Digest.of(b"nobody has this")
        assert cache.blobs.missing([*digests[1:], gone]) == [*digests[1:], gone]

        cache.blobs.upload(digests, one.cas)

        assert cache.blobs.missing([*digests, gone]) == [gone]
        assert cache.blobs.fetch([*digests, gone], two) == {gone: Loss.GONE}
        assert not two.cas.unusable(digests)


def test_a_wrong_instance_is_refused(casd: Casd) -> None:
    with pytest.raises(RemoteError) as caught:
        RemoteCache.connect(Endpoint.of(f"{casd.url}/nobody"))

    assert caught.value.reason is Reason.REMOTE_REFUSED


def test_a_server_that_is_killed_costs_one_warning(
    machine: Callable[[str], Machine], casd: Casd
) -> None:
    machine("one").build(WRITER)
    casd.process.kill()
    two = machine("two")

    two.build(WRITER)

    assert two.ran == 6
    assert len(two.warnings) == 1


def test_a_server_whose_disk_is_full_costs_one_warning(tmp_path: Path) -> None:
    """What it has no room for stays here, and is made again elsewhere."""
    with running(tmp_path / "casd", disk="2m") as casd:
        endpoint = replace(Endpoint.of(casd.url), retries=1, timeout=20.0)
        with RemoteCache.connect(endpoint) as cache, Store.open(tmp_path / "full") as store:
            source = random.Random(3)
            sizes = [1 << 19] * 8
            with pytest.raises(RemoteError):
                cache.blobs.upload([store.cas.put(source.randbytes(n)) for n in sizes], store.cas)
        one, two = Machine(tmp_path / "one", endpoint), Machine(tmp_path / "two", endpoint)

        first = one.build(WRITER).settled
        second = two.build(READER).settled

    assert one.ran == 6
    assert all(item.outcome is Outcome.DONE for item in (*first.values(), *second.values()))
    assert len(one.warnings) == 1
    assert "results are not sent to the shared cache" in one.warnings[0]
