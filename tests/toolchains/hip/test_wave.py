"""Shuffles, votes and tiles against their definitions, with both wave sizes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tests.toolchains.hip.support import Library, Load

LAUNCH_FAILURE = 719


@pytest.fixture(scope="module", params=[32, 64])
def wave(load: Load, request: pytest.FixtureRequest) -> Library:
    return load("wave", request.param)


@pytest.fixture(scope="module")
def size(wave: Library) -> int:
    return wave("wave_size")


@pytest.mark.parametrize("width", [2, 8, 16, 32, 64])
def test_shuffles(wave: Library, size: int, width: int) -> None:
    width = min(width, size)
    out = np.full((size, 8), -1, np.int32)
    wave.run("launch_shuffles", out, width)
    for lane in range(size):
        first, inside = lane - lane % width, lane % width
        # A target beyond the segment's end keeps its own value; one below its start does not
        # leave the wave.
        flipped = lane ^ 5
        expected = [
            first + 5 % width,
            lane - 3 if inside >= 3 else lane,
            lane + 3 if inside + 3 < width else lane,
            flipped if flipped < first + width else lane,
        ]
        assert out[lane].tolist() == expected * 2, lane


def test_votes(wave: Library, size: int) -> None:
    out = np.zeros((size, 6), np.uint64)
    wave.run("launch_votes", out)
    lanes = range(size)
    every_third = sum(1 << lane for lane in lanes if lane % 3 == 0)
    every_fifth = sum(1 << lane for lane in lanes if lane % 5 == 0)
    for lane in lanes:
        like_me = sum(1 << other for other in lanes if other % 4 == lane % 4)
        assert out[lane].tolist() == [every_third, 3, 0, (1 << size) - 1, every_fifth, like_me]


def test_reductions(wave: Library, size: int) -> None:
    out = np.zeros((size, 6))
    wave.run("launch_reductions", out)
    total = size * (size - 1) / 2
    xor = 0
    for lane in range(size):
        xor ^= lane
    assert (out == [total, (size - 1) * 0.5, 1 - size, xor, 1, 1]).all()


def test_divergent_lanes_meet_their_own_kind(wave: Library, size: int) -> None:
    out = np.full(size, -1, np.int32)
    wave.run("launch_divergence", out)
    values = {lane: lane + (lane ^ 8) if lane < 16 else lane for lane in range(size)}
    for lane in range(size):
        expected = -1 if 16 <= lane < 20 else values[lane] + values[lane ^ 1]
        assert out[lane] == expected, lane


def test_ballot_in_a_branch_has_its_lanes_only(wave: Library, size: int) -> None:
    out = np.zeros(size, np.uint64)
    wave.run("launch_branch_masks", out)
    even = sum(1 << lane for lane in range(0, size, 2))
    assert out.tolist() == [even, even << 1] * (size // 2)


def test_loops_of_different_length(wave: Library, size: int) -> None:
    out = np.zeros(size, np.int32)
    wave.run("launch_uneven_loops", out)
    rounds = [lane % 8 for lane in range(size)]
    expected = [sum(sum(r > i for r in rounds) for i in range(own)) for own in rounds]
    assert out.tolist() == expected


@pytest.mark.parametrize("threads", [64, 256, 1024])
def test_block_reduction_by_shuffles(wave: Library, threads: int) -> None:
    values = np.random.default_rng(threads).integers(0, 50, 10007).astype(np.float32)
    out = np.zeros(1, np.float32)
    wave.run("launch_block_sum", values, out, values.size, threads)
    assert out[0] == values.sum()


@pytest.mark.parametrize("threads", [8, 64, 160])
def test_tiles(wave: Library, threads: int) -> None:
    out = np.zeros((threads, 5), np.int32)
    wave.run("launch_tiles", out, threads)
    for thread in range(threads):
        first = thread - thread % 8
        expected = [sum(range(first, first + 8)), thread % 8, thread // 8, 7, first + 2]
        assert out[thread].tolist() == expected


def test_tiles_do_not_wait_for_each_other(wave: Library) -> None:
    out = np.zeros(128, np.int32)
    wave.run("launch_uneven_tiles", out, 128)
    for thread in range(128):
        tile = thread // 4
        assert out[thread] == sum(tile * 4 + i % 4 for i in range(tile + 1))


def test_lanes_exchange_eight_bytes(wave: Library, size: int) -> None:
    doubles, integers = np.zeros(size), np.zeros(size, np.int64)
    wave.run("launch_wide_types", doubles, integers, size)
    assert (doubles == (np.arange(size) ^ 1) * 0.25).all()
    assert (integers == (np.arange(size, dtype=np.int64) ^ 1) << 40).all()


def test_absent_lanes_are_not_waited_for_ever(wave: Library, size: int) -> None:
    out = np.zeros(size, np.int32)
    wave.run("launch_name_absent_lanes", out)
    assert (out == 17).all()


def test_named_lanes_are_waited_for(wave: Library, size: int) -> None:
    out = np.zeros(size, np.int32)
    wave.run("launch_wait_for_named_lanes", out)
    # Lanes 2 and 3 add each other's value, then 0 and 3 theirs, and 1 and 2.
    assert out[:5].tolist() == [0 + 5, 1 + 5, 5 + 1, 5 + 0, 4]


def test_mask_without_the_caller_fails_the_launch(
    wave: Library, runtime: Path, capfd: pytest.CaptureFixture[str], size: int
) -> None:
    assert wave("launch_leave_self_out") == LAUNCH_FAILURE
    assert "a mask that does not contain it" in capfd.readouterr().err
    library = ctypes.CDLL(str(runtime))
    assert library.hipDeviceSynchronize() == LAUNCH_FAILURE
    out = np.zeros(size, np.uint64)
    assert wave("launch_branch_masks", out) == LAUNCH_FAILURE
    assert library.hipDeviceReset() == 0
    wave.run("launch_branch_masks", out)
    assert (out != 0).all()
