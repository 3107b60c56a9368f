"""The counters: what kernels ask memory for is what their source says, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from analyze.counts import Access, Branch, Counts
from analyze.totals import Totals, Ways

from tests.toolchains.hip.counting import counted
from tests.toolchains.hip.support import HERE

SOURCE = HERE / "kernels" / "counting.hip"


@pytest.fixture(scope="module", params=[64, 32])
def counts(
    request: pytest.FixtureRequest, counting_runtime: Path, tmp_path_factory: pytest.TempPathFactory
) -> Counts:
    """Of the kernels as they run with waves of 64 and of 32 lanes."""
    folder = tmp_path_factory.mktemp("kernels")
    return counted(folder, counting_runtime, SOURCE, request.param)


def access(counts: Counts, kernel: str, what: str) -> Access:
    """The only such access: ``load x`` or ``store shared``."""
    operation, _, where = what.partition(" ")
    (found,) = [
        access
        for access in counts.accesses
        if access.kernel == kernel
        and access.operation == operation
        and where in {access.memory, access.space}
    ]
    return found


@pytest.mark.parametrize(
    ("kernel", "what", "sectors", "least"),
    [
        ("strided<1, 0>", "load x", 4, 4),
        ("strided<2, 0>", "load x", 8, 4),
        ("strided<32, 0>", "load x", 32, 4),
        ("strided<1, 1>", "load x", 5, 4),
        ("strided<1, 1>", "store y", 4, 4),
        ("broadcast", "load x", 1, 1),
        ("vectors", "load x", 16, 16),
        ("vectors", "store y", 16, 16),
        ("pairs", "load x", 8, 8),
        ("rows", "load x", 4, 4),
        ("some", "load x", 1, 1),
    ],
)
def test_sectors_of_a_request(
    counts: Counts, kernel: str, what: str, sectors: int, least: int
) -> None:
    """Of warps of 32: two requests, each of as many sectors as its lanes' addresses lie in."""
    found = access(counts, kernel, what).narrow

    assert found.requests == 2
    assert (found.sectors, found.sectors_least) == (2 * sectors, 2 * least)


def test_a_wide_warp_asks_once(counts: Counts) -> None:
    """Warps of 64 lanes are there where the kernel ran with such."""
    found = access(counts, "strided<2, 0>", "load x").wide

    wide = Totals(requests=1, lanes=64, bytes=256, sectors=16, sectors_least=8)
    assert found == (wide if counts.launches[0].wave == 64 else Totals())


def test_vectors_are_one_access_each(counts: Counts) -> None:
    """A float4 moves at once; three floats in a row are three, 12 bytes from lane to lane."""
    loose = [a for a in counts.accesses if a.kernel == "loose" and a.operation == "load"]

    assert access(counts, "vectors", "load x").width == 16
    assert access(counts, "pairs", "load x").width == 8
    assert [a.width for a in loose] == [4]
    assert loose[0].narrow.requests == 3 * 2
    assert loose[0].narrow.lanes == 3 * 64


@pytest.mark.parametrize(
    ("kernel", "what", "ways"),
    [
        ("banks<1>", "store shared", 1),
        ("banks<2>", "store shared", 2),
        ("banks<32>", "store shared", 32),
        ("banks<33>", "store shared", 1),
        ("banks<32>", "load shared", 32),
        ("same_word", "load shared", 1),
        ("halves", "load shared", 1),
        ("wide_words", "store shared", 1),
    ],
)
def test_ways_of_a_bank_conflict(counts: Counts, kernel: str, what: str, ways: int) -> None:
    found = access(counts, kernel, what)

    assert found.narrow.ways == ways
    assert found.wide.ways in {ways, 1}
    assert found.narrow.passes_most == ways * (4 if kernel == "wide_words" else 1)


@pytest.mark.parametrize(
    ("kernel", "what", "turns", "most"),
    [
        ("adds<1>", "atomic counts", 64, 32),
        ("adds<64>", "atomic counts", 2, 1),
        ("adds<8>", "atomic counts", 8, 4),
        ("in_shared", "atomic shared", 16, 8),
    ],
)
def test_contention_of_atomics(
    counts: Counts, kernel: str, what: str, turns: int, most: int
) -> None:
    """Two requests; the load that begins an update is part of it."""
    found = access(counts, kernel, what).narrow

    assert (found.requests, found.turns, found.turns_most) == (2, turns, most)
    loads = [a for a in counts.accesses if a.kernel == kernel and a.operation == "load"]
    assert [a.space for a in loads] == (["shared"] if kernel == "in_shared" else [])


def test_lanes_that_take_part(counts: Counts) -> None:
    some = access(counts, "some", "load x").narrow
    whole = access(counts, "strided<1, 0>", "load x").narrow

    assert (some.requests, some.partial, some.lanes, some.bytes) == (2, 2, 16, 64)
    assert (whole.requests, whole.partial, whole.lanes, whole.bytes) == (2, 0, 64, 256)


def test_a_loop_s_rounds_are_joined_by_their_number(counts: Counts) -> None:
    """Rounds of 24, 16 and 8 lanes of each warp."""
    found = access(counts, "different_counts", "load x").narrow

    assert (found.requests, found.partial) == (6, 6)
    assert found.lanes == 2 * (24 + 16 + 8)


def test_barriers_begin_anew(counts: Counts) -> None:
    """Odd lanes come twice, even ones once, and behind the barrier all of them meet again."""
    found = access(counts, "behind_a_barrier", "load x").narrow
    (barrier,) = [b for b in counts.barriers if b.kernel == "behind_a_barrier"]

    assert (found.requests, found.partial) == (3 * 2 * 4, 3 * 2 * 2)
    assert found.lanes == 3 * 2 * (64 + 32)
    assert barrier.passed == 3 * 2
    lines = SOURCE.read_text().splitlines()
    assert barrier.place is not None
    assert lines[barrier.place.line - 1].endswith("// waits")


def branch(counts: Counts, kernel: str, mark: str) -> Branch:
    """The only one on the line with a mark."""
    lines = SOURCE.read_text().splitlines()
    (found,) = [
        branch
        for branch in counts.branches
        if branch.kernel == kernel
        and branch.place is not None
        and lines[branch.place.line - 1].endswith(f"// {mark}")
    ]
    return found


@pytest.mark.parametrize(
    ("kernel", "mark", "divergent", "wide"),
    [("parts", "parts", 2, 1), ("parts_by_warp", "parts by warp", 0, 1)],
)
def test_warps_that_part_at_a_branch(
    counts: Counts, kernel: str, mark: str, divergent: int, wide: int
) -> None:
    """Two warps of 32; as one of 64 lanes, those of the second warp are on the other side."""
    found = branch(counts, kernel, mark)

    assert found.narrow == Ways(requests=2, partial=0, lanes=64, divergent=divergent)
    ran_wide = counts.launches[0].wave == 64
    assert found.wide == (Ways(1, 0, 64, wide) if ran_wide else Ways())


def test_a_loop_parts_warps_whenever_lanes_leave_it(counts: Counts) -> None:
    """Lanes go round 0 to 3 times: 24, 16 and 8 of each warp, and some leave after each round."""
    found = [b.narrow for b in counts.branches if b.kernel == "different_counts"]

    assert sum(ways.divergent for ways in found) == 2 * 3
    assert sum(ways.lanes for ways in found) == 64 + 2 * (24 + 16 + 8)


def test_kernels_without_branches_have_none(counts: Counts) -> None:
    """The loop over threads is not the author's, nor are the compiler's checks of indices."""
    assert {b.kernel for b in counts.branches}.isdisjoint({"broadcast", "vectors", "banks<1>"})


@pytest.mark.parametrize(
    ("kernel", "read", "written"),
    [
        ("strided<1, 0>", 8, 8),
        ("strided<32, 0>", 64, 8),
        ("broadcast", 1, 8),
        ("vectors", 32, 32),
        ("behind_a_barrier", 16, 8),
        ("banks<32>", 0, 8),
        ("adds<1>", 1, 1),
        ("reads_its_own", 0, 16),
    ],
)
def test_each_sector_moves_at_least_once(
    counts: Counts, kernel: str, read: int, written: int
) -> None:
    """Blocks that read the same share it; what an atomic operation changes is read and written.

    What a kernel has written itself is still in a cache.
    """
    (launch,) = [item for item in counts.launches if item.kernel == kernel]

    assert (launch.sectors_read, launch.sectors_written) == (read, written)


@pytest.mark.parametrize(
    ("kernel", "by_blocks", "most"),
    [
        ("strided<1, 0>", 8, 16),
        ("strided<32, 0>", 64, 72),
        ("behind_a_barrier", 3 * 16, 24),
        ("banks<32>", 0, 8),
        ("adds<1>", 0, 1),
    ],
)
def test_each_block_loads_its_sectors_once(
    counts: Counts, kernel: str, by_blocks: int, most: int
) -> None:
    """Three blocks that load the same do so three times; atomic operations load nothing."""
    (launch,) = [item for item in counts.launches if item.kernel == kernel]

    assert (launch.sectors_read_by_blocks, launch.sectors_most_of_block) == (by_blocks, most)


@pytest.mark.parametrize(
    ("kernel", "loads"),
    [("strided<1, 0>", 1), ("different_counts", 3), ("behind_a_barrier", 4), ("adds<1>", 1)],
)
def test_the_busiest_thread_is_known(counts: Counts, kernel: str, loads: int) -> None:
    """It waits for atomic operations, too, and not for stores or shared memory."""
    (launch,) = [item for item in counts.launches if item.kernel == kernel]

    assert launch.loads_most_of_thread == loads


def test_the_busiest_thread_computes_most(counts: Counts) -> None:
    (launch,) = [item for item in counts.launches if item.kernel == "computes"]
    operations = sum(one.operations for one in counts.arithmetic if one.kernel == "computes")

    assert launch.operations_most_of_thread == operations / (2 * 64)


def computed(counts: Counts, kernel: str, mark: str) -> dict[str, int]:
    """Operations by kind on the line with a mark, but for integers."""
    lines = SOURCE.read_text().splitlines()
    return {
        one.kind: one.operations
        for one in counts.arithmetic
        if one.kernel == kernel
        and one.kind != "integer"
        and one.place is not None
        and lines[one.place.line - 1].endswith(f"// {mark}")
    }


@pytest.mark.parametrize(
    ("kernel", "mark", "operations"),
    [
        ("computes", "two", {"f32": 2 * 8 * 128}),
        ("computes", "two special, and one", {"f32": 8 * 128, "special": 2 * 8 * 128}),
        ("computes", "one wide, converted twice", {"f64": 128, "conversion": 128}),
        ("computes_little", "fused, and one special", {"f32": 2 * 16, "special": 16}),
    ],
)
def test_arithmetic_by_line_and_kind(
    counts: Counts, kernel: str, mark: str, operations: dict[str, int]
) -> None:
    """Of all lanes that take part: the branch around it leaves a quarter."""
    assert computed(counts, kernel, mark) == operations


def test_who_computes_nothing_has_no_arithmetic_but_of_integers(counts: Counts) -> None:
    assert {one.kind for one in counts.arithmetic if one.kernel == "rows"} <= {"integer"}
    assert {one.kernel for one in counts.arithmetic if one.kind == "f64"} == {"computes"}


def test_calls_of_a_function_are_apart(counts: Counts) -> None:
    found = access(counts, "two_calls", "load x").narrow

    assert (found.requests, found.lanes) == (4, 64)


def test_no_two_accesses_are_taken_for_one(counts: Counts) -> None:
    """However far apart they stand in the code, and whatever their kinds are."""
    found = {a.operation: a.narrow.requests for a in counts.accesses if a.kernel == "unrolled"}

    assert found == {"load": 2 * 128, "store": 2 * 128}


def test_places_and_launches(counts: Counts) -> None:
    """Nothing is missing; what an access is called, and where, is as in the source."""
    found = access(counts, "broadcast", "load x")
    (launch,) = [item for item in counts.launches if item.kernel == "wide_words"]

    assert counts.whole
    assert found.place is not None
    assert found.place.file == "counting.hip"
    assert "x[blockIdx.x]" in SOURCE.read_text().splitlines()[found.place.line - 1]
    assert (launch.grid, launch.block, launch.shared_bytes) == ((1, 1, 1), (64, 1, 1), 1024)
