"""The modelled time: what counts take at a GPU's peaks, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from analyze.modelled import Peaks, modelled
from analyze.sums import amounts, sums

PEAKS = Peaks(
    gpu="Toy 9",
    processors=4,
    clock_mhz=1000,
    memory_gbs=32,
    l1_kib=1,
    l2_mib=1,
    launch_us=1,
    clock={"sectors": 4, "shared": 1, "f32": 64, "branches": 2},
)
"""A nanosecond a clock, and a sector a nanosecond from memory."""


def call(blocks: int = 4, **changes: Any) -> dict[str, Any]:
    """A launch that reads 1000 sectors, each once, and multiplies."""
    launch = {
        "kernel": "k",
        "grid": [blocks, 1, 1],
        "block": [64, 1, 1],
        "count": 1,
        "shared_bytes": 0,
        "exchanges": 0,
        "sectors_read": 1000,
        "sectors_written": 24,
        "sectors_read_by_blocks": 1000,
        "loads_most_of_thread": None,
        "operations_most_of_thread": None,
        "reuse": None,
    }
    loads: dict[str, Any] = {"kernel": "k", "space": "global", "operation": "load"}
    loads["warp32"] = {"requests": 250, "sectors": 1600}
    found: dict[str, Any] = {
        "config": "f32 n=1",
        "of": "f32 n=9",
        "flops": 0,
        "launches": [launch],
        "accesses": [loads],
        "branches": [],
        "barriers": [],
        "arithmetic": [{"kernel": "k", "kind": "f32", "operations": 25600}],
    }
    return {**found, **changes}


def test_each_part_takes_what_its_peak_says() -> None:
    found = modelled(call(), PEAKS)

    assert found.parts == {"launch": 1000, "memory": 1024, "sectors": 100, "f32": 100}
    assert found.ns == 2224
    assert found.to_json()["ns"] == 2224
    assert (found.left_out, found.l2) == (("delays",), None)


def test_few_blocks_use_few_processors() -> None:
    one, all_of_them, more = (modelled(call(blocks), PEAKS).parts for blocks in (1, 4, 400))

    assert one["f32"] == 4 * all_of_them["f32"]
    assert one["memory"] == all_of_them["memory"]
    assert more == all_of_them
    assert [modelled(call(blocks), PEAKS).busy for blocks in (1, 4, 400)] == [1, 4, 4]


def test_what_has_no_peak_is_named_and_takes_nothing() -> None:
    atomics: dict[str, Any] = {"kernel": "k", "space": "global", "operation": "atomic"}
    atomics["warp32"] = {"requests": 1, "sectors": 0, "turns": 32}
    barriers = [{"kernel": "k", "passed": 7}]
    accesses = [*call()["accesses"], atomics]
    found = modelled(call(accesses=accesses, barriers=barriers), PEAKS)

    assert found.left_out == ("atomics", "barriers", "delays")
    assert found.ns == modelled(call(), PEAKS).ns
    known = replace(PEAKS, clock={**PEAKS.clock, "atomics": 1})
    told = modelled(call(accesses=accesses, barriers=barriers), known)
    assert (told.parts["atomics"], told.left_out) == (8, ("barriers", "delays"))


@pytest.mark.parametrize(("mib", "read"), [(1, 1000), (1 / 64, 3000)])
def test_a_shared_cache_that_is_too_small_makes_memory_deliver_again(mib: float, read: int) -> None:
    """1000 sectors are loaded three times, each time 600 others apart or more: 1 MiB holds them."""
    empty = {"first": 0, "within": (), "across": ()}
    loads = {"first": 1000, "within": (), "across": (*[0] * 10, 2000)}
    reuse = {"one_in": 1, "load": loads, "store": {**empty, "first": 24}, "atomic": empty}
    (launch,) = call()["launches"]
    found = modelled(call(launches=[{**launch, "reuse": reuse}]), replace(PEAKS, l2_mib=mib))

    assert found.parts["memory"] == read + 24
    assert found.to_json()["l2"] == {
        "mib": mib,
        "sectors_asked": 3024,
        "hits": round((3000 - read) / 3024, 4),
        "bytes_read": 32 * read,
        "bytes_written": 32 * 24,
    }


def test_launches_of_two_kernels_are_apart() -> None:
    (launch,) = call()["launches"]
    alone = {**launch, "kernel": "last", "grid": [1, 1, 1], "count": 3}
    both = call(launches=[launch, alone])
    first, last = (amounts(kernel, 4) for kernel in sums(both)["launches"])

    assert (first["launch"], first["f32"]) == (1, 25600 / 4)
    assert (last["launch"], last["f32"]) == (3, 0)
