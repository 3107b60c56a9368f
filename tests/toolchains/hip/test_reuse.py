"""How far apart accesses to the same sectors are, and what caches make of it, by arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest
from analyze.counts import Counts
from analyze.reuse import Distances, Reuse, Served, held, served

from tests.toolchains.hip.counting import counted
from tests.toolchains.hip.support import HERE

SWEPT = 1 << 17


@pytest.fixture(scope="module")
def counts(counting_runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Counts:
    source = HERE / "kernels" / "reuse.hip"
    folder = tmp_path_factory.mktemp("reuse")
    return counted(folder, counting_runtime, source, elements=8 * SWEPT)


def reuse(counts: Counts, kernel: str) -> Reuse:
    """Of the only launch of a kernel."""
    (launch,) = [one for one in counts.launches if one.kernel == kernel]
    assert launch.reuse is not None
    return launch.reuse


def of(counts: Counts, kernel: str, capacity: int, own: int = 0) -> Served:
    (launch,) = [one for one in counts.launches if one.kernel == kernel]
    assert launch.reuse is not None
    return served(launch.reuse, own=own, shared=capacity, written=launch.sectors_written)


def test_nothing_of_a_stream_is_served(counts: Counts) -> None:
    found = reuse(counts, "copies")

    assert found.one_in == 1
    assert found.of("load") == found.of("store") == Distances(first=32)
    assert of(counts, "copies", 1 << 20) == Served(asked=64, hits=0, read=32, written=32)


def test_accesses_of_a_loop_are_in_the_order_of_the_program(counts: Counts) -> None:
    """Three or seven other sectors, however many rounds there are."""
    assert reuse(counts, "mirrors").of("load") == Distances(64, within=(0, 0, 32, 32))


def test_tiles_of_a_product_are_served_where_the_cache_holds_them(counts: Counts) -> None:
    """Of 512 loads 256 are repeated: rows after 159 others, columns after 255 to 311."""
    found = reuse(counts, "multiplies").of("load")

    assert (found.first, sum(found.within)) == (256, 0)
    assert found.across == (*[0] * 8, 128 + 8, 120)
    for capacity, hits in ((128, 0), (256, 136), (512, 256)):
        expected = Served(asked=512 + 128, hits=hits, read=512 - hits, written=128)
        assert of(counts, "multiplies", capacity) == expected


def test_a_transpose_writes_sectors_again_unless_the_cache_holds_a_column(counts: Counts) -> None:
    """Eight blocks write to each sector, 71 others apart."""
    found = reuse(counts, "transposes")

    assert found.of("load") == Distances(first=512)
    assert found.of("store") == Distances(512, across=(*[0] * 7, 3584))
    assert of(counts, "transposes", 64).written == 4096
    assert of(counts, "transposes", 128) == Served(4608, hits=3584, read=512, written=512)


def test_atomic_operations_are_of_the_shared_cache(counts: Counts) -> None:
    """A half of a wave updates four sectors, and the next block comes back after seven others."""
    found = reuse(counts, "adds")

    assert found.of("load") == Distances()
    assert found.of("atomic") == Distances(8, across=(0, 0, 0, 8))
    assert of(counts, "adds", 8, own=8) == Served(asked=16, hits=8, read=8, written=8)


def test_of_too_many_sectors_some_are_followed(counts: Counts) -> None:
    """Twice 131072, each after all others: figures are estimates, within 5 %."""
    found = reuse(counts, "sweeps")
    loads = found.of("load")

    assert found.one_in in {2, 4}
    assert loads.first == pytest.approx(SWEPT, rel=0.05)
    assert sum(loads.across) == pytest.approx(SWEPT, rel=0.05)
    assert sum(loads.across[:17]) == sum(loads.across[19:]) == 0


def test_a_block_s_own_cache_serves_its_loads() -> None:
    loads = Distances(first=4, within=(0, 8), across=(0, 0, 16))
    found = served(Reuse(1, {"load": loads}), own=2, shared=64, written=0)

    assert found == Served(asked=20, hits=16, read=4, written=0)


@pytest.mark.parametrize(
    ("capacity", "expected"), [(0, 0), (1, 1), (2, 3), (4, 7), (6, 11), (8, 15), (100, 15)]
)
def test_capacities_within_an_entry_serve_a_part(capacity: float, expected: float) -> None:
    assert held((1, 2, 4, 8), capacity) == expected
