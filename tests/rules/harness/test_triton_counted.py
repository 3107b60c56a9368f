"""What Triton kernels ask memory for, beside counts by hand and a slower way of counting."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import os
from collections import Counter as Tally
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from analyze.counts import Counts, read_counts
from analyze.findings import find
from analyze.totals import Totals
from sanitize.places import Place, Places
from triton_counted import requests
from triton_counted.counter import Counter
from triton_cpu import interpreter as triton_cpu

triton_cpu.install()


@triton.jit
def copy(source, target, n, STEP: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + i * STEP, mask=i < n)
    tl.store(target + i, value, mask=i < n)


@triton.jit
def transposed(source, target, ROWS: tl.constexpr, COLS: tl.constexpr):  # noqa: N803
    rows, cols = tl.arange(0, ROWS), tl.arange(0, COLS)
    value = tl.load(source + cols[None, :] * ROWS + rows[:, None])
    tl.store(target + rows[:, None] * COLS + cols[None, :], value)


@triton.jit
def add_up(source, target, BINS: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.arange(0, BLOCK)
    tl.atomic_add(target + i % BINS, tl.load(source + i))


class Counted:
    """Runs launches and reads what was said of them."""

    def __init__(self, kernel, file):
        self.path = kernel.fn.__code__.co_filename
        self.first = kernel.fn.__code__.co_firstlineno
        read, write = os.pipe()
        self._read, self._write = os.fdopen(read, "rb"), write
        name = Path(self.path).name
        lines = [[[1, number, 0]] for number in range(1, 1000)]
        self._places = Places({"files": {name: {"name": file, "lines": lines}}, "code": []})
        triton_cpu.memory.observer = Counter(self.path, write)

    def end(self) -> Counts:
        triton_cpu.memory.observer = None
        os.close(self._write)
        with self._read:
            return read_counts(self._read.read().decode(), self._places)


@pytest.fixture(autouse=True)
def nobody_observes_afterwards():
    yield
    triton_cpu.memory.observer = None


def test_a_copy_has_the_counts_of_a_calculation_by_hand():
    """100 floats by blocks of 64: 2 programs, 4 warps of which the last asks for 4 lanes."""
    source, target = torch.rand(100), torch.zeros(100)
    counted = Counted(copy, "mine.py")

    with triton_cpu.tensors(x=source, y=target):
        copy[(2,)](source, target, 100, STEP=1, BLOCK=64)
    counts = counted.end()

    assert torch.equal(source, target)
    (launch,) = counts.launches
    assert (launch.kernel, launch.grid, launch.block) == ("copy", (2, 1, 1), ())
    assert (launch.sectors_read, launch.sectors_written) == (13, 13)
    load, store = counts.accesses
    assert load.place == Place("mine.py", counted.first + 3, 0)
    assert (load.memory, load.operation, load.width) == ("x", "load", 4)
    assert (store.memory, store.operation) == ("y", "store")
    assert load.narrow == Totals(4, 1, 100, 400, 13, 13)
    assert load.wide == Totals(2, 1, 100, 400, 13, 13)
    assert counts.whole


def test_what_is_scattered_stands_out():
    source, target = torch.rand(8 * 64), torch.zeros(64)
    counted = Counted(copy, "mine.py")

    with triton_cpu.tensors(x=source, y=target):
        copy[(1,)](source, target, 64, STEP=8, BLOCK=64)
    counts = counted.end()

    assert counts.accesses[0].narrow == Totals(2, 0, 64, 256, 64, 8)
    (finding,) = find([("n=64", counts)], 32)
    assert (finding.kind, finding.access.memory) == ("UNCOALESCED", "x")


def test_lanes_take_neighbours_in_memory_whichever_axis_they_are_on():
    """A block that is read along its columns is not scattered: the compiler turns its layout."""
    source, target = torch.rand(32, 16), torch.zeros(16, 32)
    counted = Counted(transposed, "mine.py")

    with triton_cpu.tensors(x=source, y=target):
        transposed[(1,)](source, target, ROWS=16, COLS=32)
    counts = counted.end()

    assert torch.equal(target, source.T.contiguous())
    assert [access.narrow.efficiency for access in counts.accesses] == [1.0, 1.0]


def test_contention_is_the_most_frequent_address_of_a_request():
    source, target = torch.ones(64), torch.zeros(3)
    counted = Counted(add_up, "mine.py")

    with triton_cpu.tensors(x=source, y=target):
        add_up[(1,)](source, target, BINS=3, BLOCK=64)
    counts = counted.end()

    (atomic,) = [access for access in counts.accesses if access.operation == "atomic"]
    assert (atomic.narrow.turns, atomic.narrow.turns_most) == (22, 11)  # 32 lanes, 3 addresses
    assert (atomic.wide.turns, atomic.wide.turns_most) == (22, 22)
    assert [finding.kind for finding in find([("", counts)], 32)] == ["ATOMIC_CONTENTION"]


def test_a_launch_that_fails_says_what_it_has_asked_for():
    source, target = torch.rand(10), torch.zeros(64)
    counted = Counted(copy, "mine.py")

    with (
        triton_cpu.tensors(x=source, y=target),
        pytest.raises(triton_cpu.OutOfBoundsError),
    ):
        copy[(1,)](source, target, 64, STEP=1, BLOCK=64)
    counts = counted.end()

    (load,) = counts.accesses
    assert load.narrow.lanes == 64


def slowly(addresses, active, width, warp):
    """The same totals, one lane after the other."""
    total = [0] * requests.FIELDS
    for begin in range(0, len(addresses), warp):
        lanes = [
            int(address)
            for address, asked in zip(
                addresses[begin : begin + warp], active[begin : begin + warp], strict=True
            )
            if asked
        ]
        if not lanes:
            continue
        turns = max(Tally(lanes).values())
        sums = [
            1,
            int(len(lanes) < warp),
            len(lanes),
            len(lanes) * width,
            len({lane // 32 for lane in lanes}),
            -(-len(set(lanes)) * width // 32),
        ]
        total[:6] = [a + b for a, b in zip(total, sums, strict=False)]
        total[9] += turns
        total[10] = max(total[10], turns)
    return total


@pytest.mark.parametrize("warp", [32, 64])
@pytest.mark.parametrize("seed", range(20))
def test_any_access_is_counted_as_lane_by_lane(seed, warp):
    draw = np.random.default_rng(seed)
    width = int(draw.choice([1, 2, 4, 8]))
    size = int(draw.choice([1, 3, 32, 64, 100, 257]))
    addresses = draw.integers(0, int(draw.choice([4, 200, 10_000])), size).astype(np.uint64)
    addresses *= np.uint64(width)
    active = draw.random(size) < draw.choice([0.0, 0.5, 1.0])

    found = requests.totals(addresses, active, width, warp, atomic=True)

    assert found.tolist() == slowly(addresses, active, width, warp)
