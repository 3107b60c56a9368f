"""What a judge makes of a counted kernel's lines, whoever wrote them, and what it tells of them."""

from __future__ import annotations

import pytest
from analyze.counts import Access, Counts, read_counts
from analyze.findings import MOST, find
from analyze.reuse import Distances, Reuse
from analyze.totals import Totals, Ways
from sanitize.places import Place, Places

TABLE = {
    "schema": 1,
    "files": {"kernel.hip": {"name": "mine.hip", "lines": [[[1, 3, 1]], [[1, 7, 3]]]}},
    "code": [[16, 0, 1, 1], [32, 0, 2, 1]],
}
PLACES = Places(TABLE)
PLACE = Place("mine.hip", 3, 1)
NONE = " 0" * 11
LAUNCH = (
    "kabuild-counts launch fill<float>; grid 2 1 1 block 64 1 1 shared 0 wave 64"
    " exchanges 3 uncounted {lost}"
)
ACCESS = "kabuild-counts access {place} x; load global 4 narrow{totals} wide" + NONE
TOTALS = " 2 0 64 256 16 8 0 0 0 0 0"
FOOTPRINT = "kabuild-counts footprint sectors 16 {written} whole {whole}"
BY_BLOCKS = FOOTPRINT.replace("whole", "blocks {by_blocks} {most} whole", 1)
ARITHMETIC = "kabuild-counts arithmetic {place}; {kind} {operations}"
BRANCH = "kabuild-counts branch {place}; narrow{ways} wide 0 0 0 0"
WAYS = " 6 2 150 3"
BARRIER = "kabuild-counts barrier at:kernel.hip:2:1,10; 5"
END = "kabuild-counts end"


def said(*lines: str) -> Counts:
    return read_counts("\n".join(["noise", *lines]), PLACES)


def call(*accesses: Access) -> list[tuple[str, Counts]]:
    return [("n=1", Counts(accesses=accesses))]


def loads(name: str, sectors: int, least: int, requests: int = 1) -> Access:
    totals = Totals(requests, 0, 32 * requests, 128 * requests, sectors, least)
    return Access("fill", PLACE, name, "load", "global", 4, totals, Totals())


def test_a_launch_has_its_accesses_and_barriers() -> None:
    counts = said(LAUNCH.format(lost=0), ACCESS.format(place="10", totals=TOTALS), BARRIER, END)

    (launch,), (access,), (barrier,) = counts.launches, counts.accesses, counts.barriers
    assert counts.whole
    assert (launch.kernel, launch.grid, launch.block) == ("fill<float>", (2, 1, 1), (64, 1, 1))
    assert (access.kernel, access.place, access.memory) == ("fill<float>", PLACE, "x")
    assert access.narrow == Totals(2, 0, 64, 256, 16, 8)
    assert (barrier.place, barrier.passed) == (Place("mine.hip", 7, 3), 5)


def test_a_launch_has_its_branches_and_what_moves_at_least() -> None:
    counts = said(
        LAUNCH.format(lost=0),
        FOOTPRINT.format(written=9, whole=1),
        BRANCH.format(place="10", ways=WAYS),
        BRANCH.format(place="10", ways=WAYS),
        END,
    )

    (launch,), (branch,) = counts.launches, counts.branches
    assert counts.whole
    assert (launch.sectors_read, launch.sectors_written) == (16, 9)
    assert (branch.kernel, branch.place) == ("fill<float>", PLACE)
    assert branch.narrow == Ways(requests=12, partial=4, lanes=300, divergent=6)
    assert branch.to_json()["warp32"]["divergent"] == 6
    assert "warp64" not in branch.to_json()


def test_launches_have_what_their_blocks_load_if_all_say_so() -> None:
    def launch(footprint: str) -> tuple[str, ...]:
        return LAUNCH.format(lost=0), footprint, END

    few = launch(BY_BLOCKS.format(written=9, by_blocks=32, most=20, whole=1))
    many = launch(BY_BLOCKS.format(written=9, by_blocks=48, most=25, whole=1))
    silent = launch(FOOTPRINT.format(written=9, whole=1))

    (told,) = said(*many, *few).launches
    assert (told.sectors_read_by_blocks, told.sectors_most_of_block) == (80, 25)
    (untold,) = said(*many, *silent).launches
    assert (untold.sectors_read_by_blocks, untold.sectors_most_of_block) == (None, None)


def test_the_busiest_thread_of_equal_launches_counts() -> None:
    def launch(loads: int, operations: int) -> tuple[str, ...]:
        told = f"kabuild-counts busiest loads {loads} operations {operations}"
        return LAUNCH.format(lost=0), told, END

    (told,) = said(*launch(7, 90), *launch(9, 80)).launches
    assert (told.loads_most_of_thread, told.operations_most_of_thread) == (9, 90)
    (untold,) = said(*launch(7, 90), LAUNCH.format(lost=0), END).launches
    assert untold.loads_most_of_thread is None


REUSE = "kabuild-counts reuse {kind} one_in {one_in} first 4 within{within} across{across}"


def test_reuse_is_added_up_by_launch_and_operation() -> None:
    loads = REUSE.format(kind="load", one_in=1, within=" 1 2", across="")
    stores = REUSE.format(kind="store", one_in=2, within="", across=" 0 0 8")
    one = (LAUNCH.format(lost=0), loads, stores, END)

    (launch,) = said(*one, *one).launches
    assert launch.reuse is not None
    assert launch.reuse.of("load") == Distances(8, (2, 4))
    assert launch.reuse.to_json()["store"] == {"first": 8, "within": (), "across": (0, 0, 16)}
    assert launch.reuse.one_in == 2
    assert Reuse.of_json(launch.reuse.to_json()).to_json() == launch.reuse.to_json()
    (untold,) = said(*one, LAUNCH.format(lost=0), END).launches
    assert untold.reuse is None
    for wrong in (loads + " -1", loads.replace("load", "steal"), loads + " 1" * 33):
        (launch,) = said(LAUNCH.format(lost=0), wrong, END).launches
        assert launch.reuse is None


def test_arithmetic_is_added_up_by_line_and_kind() -> None:
    def line(kind: str, place: str = "10", operations: str = "64") -> str:
        return ARITHMETIC.format(place=place, kind=kind, operations=operations)

    counts = said(LAUNCH.format(lost=0), line("f32"), line("f32"), line("special"), END)

    assert counts.whole
    assert [(one.kind, one.operations) for one in counts.arithmetic] == [
        ("f32", 128),
        ("special", 64),
    ]
    assert counts.arithmetic[0].to_json() == {
        "kernel": "fill<float>",
        "file": "mine.hip",
        "line": 3,
        "column": 1,
        "kind": "f32",
        "operations": 128,
    }
    assert not said(line("f32"), LAUNCH.format(lost=0), END).whole
    for wrong in (line("f33"), line("f32", operations="-1"), line("f32", operations="9" * 20)):
        assert said(LAUNCH.format(lost=0), wrong, END).arithmetic == ()


def test_launches_of_a_kernel_are_added_up() -> None:
    access = ACCESS.format(place="10", totals=" 1 0 32 4 1 1 5 1 5 2 2")
    one = (LAUNCH.format(lost=0), FOOTPRINT.format(written=9, whole=1), access, END)
    counts = said(*one, *one)

    assert [(one.count, one.sectors_written) for one in counts.launches] == [(2, 18)]
    assert [a.narrow for a in counts.accesses] == [Totals(2, 0, 64, 8, 2, 2, 10, 2, 5, 4, 2)]


@pytest.mark.parametrize(
    "lines",
    [
        (LAUNCH.format(lost=0),),
        (LAUNCH.format(lost=7), END),
        (ACCESS.format(place="10", totals=TOTALS), END),
        (LAUNCH.format(lost=0), LAUNCH.format(lost=0), END),
        (LAUNCH.format(lost=0), END, "kabuild-counts full"),
        (LAUNCH.format(lost=0), FOOTPRINT.format(written=9, whole=0), END),
        (LAUNCH.format(lost=0), BRANCH.format(place="10", ways=" 2 0 64 3"), END),
        (LAUNCH.format(lost=0), BRANCH.format(place="10", ways=" 0 0 64 0"), END),
        (BRANCH.format(place="10", ways=WAYS), END),
    ],
    ids=[
        "does_not_end",
        "has_lost_some",
        "has_no_beginning",
        "begins_twice",
        "is_full",
        "moved_too_much_to_keep",
        "parts_more_often_than_it_comes",
        "has_lanes_of_no_warp",
        "branches_before_it_begins",
    ],
)
def test_what_is_missing_is_not_hidden(lines: tuple[str, ...]) -> None:
    assert not said(*lines).whole


@pytest.mark.parametrize(
    "line",
    [
        ACCESS.format(place="10", totals=" 2 0 64"),
        ACCESS.format(place="10", totals=TOTALS.replace("64", "-64")),
        ACCESS.format(place="10", totals=TOTALS.replace("64", "9" * 40)),
        ACCESS.format(place="10", totals=TOTALS).replace("load", "steal"),
        ACCESS.format(place="10", totals=TOTALS).replace(" x;", " x y;"),
        ACCESS.format(place="10", totals=TOTALS) + " and more",
    ],
)
def test_lines_of_another_form_are_no_counts(line: str) -> None:
    counts = said(LAUNCH.format(lost=0), line, END)

    assert (counts.accesses, counts.whole) == ((), True)


@pytest.mark.parametrize("totals", [" 0" + " 1" * 10, NONE, " 0 0 0 0 9 1 0 0 0 0 0"])
def test_a_cost_without_a_request_is_none(totals: str) -> None:
    """A candidate that makes one up gains nothing, and stops nobody."""
    forged = ACCESS.format(place="10", totals=totals)
    counts = said(LAUNCH.format(lost=0), forged, END)

    assert (counts.accesses, counts.whole) == ((), False)
    assert find([("n=1", counts)], 32) == find([("n=1", counts)], 64) == []


def test_a_place_in_nobody_s_source_is_none() -> None:
    counts = said(LAUNCH.format(lost=0), ACCESS.format(place="0", totals=TOTALS), END)

    assert counts.accesses[0].place is None
    assert counts.accesses[0].to_json()["line"] == 0


def test_a_finding_has_its_evidence() -> None:
    (found,) = find(call(loads("x", sectors=32, least=4), loads("y", sectors=4, least=4)), 32)

    assert (found.kind, found.access.memory, found.config) == ("UNCOALESCED", "x", "n=1")
    assert found.share == pytest.approx(28 / 36)
    assert found.text == (
        "loads of 'x' move 32.0 sectors per request where 4.0 would hold the bytes "
        "(12% of 32 sectors needed); let neighbouring lanes access neighbouring elements"
    )


def test_an_odd_beginning_is_another_mistake() -> None:
    (found,) = find(call(loads("x", sectors=5, least=4)), 32)

    assert "begin at a multiple of 32 bytes" in found.text


def test_conflicts_and_contention_are_found() -> None:
    banks = Totals(2, 0, 64, 256, passes=64, passes_least=2, passes_most=32)
    turns = Totals(2, 0, 64, 256, 2, 2, turns=64, turns_most=32)
    shared = Access("fill", PLACE, "tile", "store", "shared", 4, banks, Totals())
    atomic = Access("fill", PLACE, "sum", "atomic", "global", 4, turns, Totals())

    found = find(call(shared, atomic), 32)

    assert [item.kind for item in found] == ["BANK_CONFLICT", "ATOMIC_CONTENTION"]
    assert "conflict 32.0 ways, 32 at worst (64 passes of the banks for 2)" in found[0].text
    assert "have 32.0 lanes of a warp at one address, 32 at worst (2 requests)" in found[1].text


def test_what_costs_no_more_than_it_has_to_is_not_told() -> None:
    banks = Totals(2, 0, 64, 256, passes=2, passes_least=2, passes_most=1)
    turns = Totals(2, 0, 64, 256, 16, 16, turns=2, turns_most=1)
    shared = Access("fill", PLACE, "tile", "store", "shared", 4, banks, Totals())
    atomic = Access("fill", PLACE, "sum", "atomic", "global", 4, turns, Totals())
    little = loads("z", sectors=5, least=4)

    assert find(call(shared, atomic, loads("x", 400, 400), little), 32) == []


def test_an_access_is_told_once_where_it_wastes_most() -> None:
    calls = [
        ("small", Counts(accesses=(loads("x", 8, 4),))),
        ("large", Counts(accesses=(loads("x", 32, 4),))),
    ]

    assert [item.config for item in find(calls, 32)] == ["large"]
    assert find(calls, 64) == []


def test_only_a_handful_is_told() -> None:
    many = [(f"n={n}", Counts(accesses=(loads(f"x{n}", 8, 4),))) for n in range(MOST + 3)]

    assert len(find(many, 32)) == MOST
