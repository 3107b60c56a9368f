"""Atomic operations of many blocks on several workers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.toolchains.hip.support import Library, Load


@pytest.fixture(scope="module")
def atomics(load: Load) -> Library:
    return load("atomics")


def test_histogram(atomics: Library) -> None:
    values = np.random.default_rng(1).integers(0, 1000, 100_000).astype(np.int32)
    bins = np.zeros(64, np.int32)
    atomics.run("launch_histogram", values, bins, values.size)
    assert (bins == np.bincount(values % 64, minlength=64)).all()


def test_additions_of_every_type(atomics: Library) -> None:
    i32, u64 = np.zeros(1, np.int32), np.zeros(1, np.uint64)
    f32, f64 = np.zeros(1, np.float32), np.zeros(1, np.float64)
    f16, bf16, pair = np.zeros(1, np.float16), np.zeros(1, np.uint16), np.zeros(2, np.float16)
    atomics.run("launch_add_one", i32, u64, f32, f64, f16, bf16, pair)
    assert (i32[0], u64[0], f32[0], f64[0]) == (6400, 6400 << 33, 3200.0, 1600.0)
    assert f16[0] == 100
    assert (bf16.astype(np.uint32) << 16).view(np.float32)[0] == 100
    assert pair.tolist() == [100, 200]


def test_other_operations(atomics: Library) -> None:
    out = np.array([0, 0, 0, -1, 0, 0, 0], np.int32)
    wrapped = np.zeros(2, np.uint32)
    atomics.run("launch_others", out, wrapped)
    n = 6400
    xor = int(np.bitwise_xor.reduce(np.arange(n)))
    low = (1 << 20) - 1
    assert out.tolist() == [n - 1, 1 - n, low, ~low, xor, -n, 42]
    # Inc counts 0..9 and around again, Dec the other way.
    assert wrapped.tolist() == [n % 10, -n % 10]


def test_lock_by_compare_and_swap(atomics: Library) -> None:
    lock, count = np.zeros(1, np.int32), np.zeros(1, np.int32)
    atomics.run("launch_locked_increment", lock, count)
    assert count[0] == 1000
