"""What a profiler's figures come to, for figures as an H200 has counted them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from counters.findings import Finding, find
from counters.launches import Launch

# softmax of tasks/hip2hip, f32 rows=2048 cols=50257, by Nsight Compute 2025.3 on an H200.
SOFTMAX: Mapping[str, float] = {
    "blocks_by_blocks": 32.0,
    "blocks_by_registers": 8.0,
    "blocks_by_shared_memory": 16.0,
    "blocks_by_warps": 8.0,
    "blocks_of_device": 1.94,
    "compute_percent": 22.48,
    "global_load_bytes_of_sector": 25.68,
    "global_load_sectors": 48096768.0,
    "global_store_bytes_of_sector": 25.68,
    "global_store_sectors": 16032256.0,
    "instructions": 143792128.0,
    "issued_percent": 23.32,
    "l1_percent": 19.73,
    "l2_percent": 71.25,
    "lanes_percent": 99.95,
    "local_load_sectors": 0.0,
    "local_store_sectors": 0.0,
    "memory_percent": 57.84,
    "memory_read_bytes": 1303485440.0,
    "memory_written_bytes": 422700800.0,
    "occupancy_percent": 91.68,
    "shared_load_conflicts": 1516.0,
    "shared_load_passes": 132588.0,
    "shared_store_conflicts": 10550.0,
    "shared_store_passes": 92470.0,
    "time_ns": 620160.0,
    "wait_barrier": 0.87,
    "wait_global_memory": 57.05,
    "wait_other_warps": 99.0,
}


def launch(kernel: str = "softmax_rows", /, **changed: float) -> Launch:
    return Launch(kernel, (2048, 1, 1), (256, 1, 1), {**SOFTMAX, **changed})


def told(*launches: Launch) -> list[Finding]:
    return find("f32 n=1", launches)


def test_what_is_in_order_has_only_its_bound() -> None:
    (finding,) = told(launch())

    assert finding.to_json() == {
        "kind": "MEMORY_BOUND",
        "config": "f32 n=1",
        "kernel": "softmax_rows",
        "share": 1.0,
        "text": "memory is busy 58% of the time (1,303,485,440 bytes read, 422,700,800 written); "
        "move fewer bytes, or use them more often",
    }


@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"memory_percent": 66.0}, "MEMORY_BOUND", "memory is busy 66% of the time"),
        ({"memory_percent": 50.0}, "L2_BOUND", "the L2 cache is busy 71% of the time"),
        ({"compute_percent": 90.0}, "COMPUTE_BOUND", "the arithmetic units are busy 90%"),
        ({"l1_percent": 95.0}, "L1_BOUND", "the L1 cache is busy 95%"),
        (
            {"l2_percent": 30.0, "memory_percent": 40.0},
            "LATENCY_BOUND",
            (
                "Between two instructions a warp waits 156.9 cycles, 57.0 of them for global "
                "memory; have more loads in flight"
            ),
        ),
    ],
)
def test_a_kernel_has_one_bound(changed: Mapping[str, float], kind: str, said: str) -> None:
    (finding,) = told(launch(**changed))

    assert finding.kind == kind
    assert said in finding.text


@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"blocks_of_device": 0.12}, "FEW_BLOCKS", "its blocks fill 12% of what the device holds"),
        (
            {"occupancy_percent": 24.0},
            "LOW_OCCUPANCY",
            (
                "24% of the warps that a multiprocessor can hold are there (registers allow 8 "
                "blocks), and an instruction is issued in 23% of the cycles"
            ),
        ),
        ({"global_load_bytes_of_sector": 4.0}, "UNCOALESCED", "loads use 4.0 of 32 bytes"),
        ({"global_store_bytes_of_sector": 8.0}, "UNCOALESCED", "stores use 8.0 of 32 bytes"),
        (
            {"shared_load_conflicts": 4e6, "shared_load_passes": 5e6},
            "BANK_CONFLICT",
            "4,000,000 of 5,000,000 turns of the banks of shared memory are for loads in conflict",
        ),
        ({"lanes_percent": 51.0}, "DIVERGENT", "51% of a warp's lanes take part"),
        ({"local_load_sectors": 9e6}, "SPILLS", "9,000,000 sectors of local memory"),
        ({"shared_conflict_percent": 12.0}, "BANK_CONFLICT", "12% of the time"),
    ],
)
def test_what_costs_time_is_said(changed: Mapping[str, float], kind: str, said: str) -> None:
    _, finding = told(launch(**changed))

    assert finding.kind == kind
    assert said in finding.text


def test_few_warps_that_are_busy_are_enough() -> None:
    assert len(told(launch(occupancy_percent=24.0, issued_percent=85.0))) == 1


def test_a_kernel_that_is_idle_for_an_unknown_reason_has_no_bound() -> None:
    idle = {"l2_percent": 30.0, "memory_percent": 20.0, "wait_global_memory": 0.0}

    assert told(launch(**idle, wait_barrier=0.0)) == []


def test_kernels_that_take_little_time_are_not_worth_a_word() -> None:
    quick = [launch("quick", time_ns=1000.0, lanes_percent=3.0)] * 3

    slow, fast = launch("slow", time_ns=400000.0), launch("fast", time_ns=100000.0)

    found = told(*quick, fast, slow)

    assert [(one.kernel, round(one.share, 2)) for one in found] == [("slow", 0.8), ("fast", 0.2)]


def test_the_launches_of_a_kernel_count_together() -> None:
    """Its share is that of all, its figures are those of the longest."""
    halves = [launch("half", time_ns=100.0, lanes_percent=20.0), launch("half", time_ns=300.0)]

    assert [(one.kind, one.share) for one in told(*halves)] == [("MEMORY_BOUND", 1.0)]


def test_without_figures_nothing_is_said() -> None:
    assert told() == []
    assert told(Launch("k", (1,), (1,), {})) == []
    assert told(Launch("k", (1,), (1,), {"time_ns": 5.0})) == []
