"""Barriers and shared memory, with both wave sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.toolchains.hip.support import Library, Load


@pytest.fixture(scope="module", params=[32, 64])
def barrier(load: Load, request: pytest.FixtureRequest) -> Library:
    return load("barrier", request.param)


@pytest.mark.parametrize(("n", "blocks"), [(10000, 7), (1, 1), (255, 3), (100_000, 100)])
def test_tree_reduction(barrier: Library, n: int, blocks: int) -> None:
    values = np.random.default_rng(n).integers(0, 100, n).astype(np.float32)
    out = np.full(blocks, -1, np.float32)
    barrier.run("launch_block_sums", values, out, n, blocks)
    assert out.sum() == values.sum()


@pytest.mark.parametrize("threads", [2, 64, 100, 256])
def test_threads_that_left_are_not_waited_for(barrier: Library, threads: int) -> None:
    out = np.full(threads, -1, np.int32)
    barrier.run("launch_leave_early", out, threads)
    even = np.arange(0, threads, 2)
    assert (out[even] == (even + 2) % threads).all()
    assert (out[1::2] == -1).all()


@pytest.mark.parametrize(("threads", "threshold"), [(1, 0), (1, 1), (100, 33), (64, 64), (1024, 7)])
def test_votes_of_a_block(barrier: Library, threads: int, threshold: int) -> None:
    out = np.full(threads, -1, np.int32)
    barrier.run("launch_votes", out, threads, threshold)
    count, any_, all_ = min(threads, threshold), threshold < threads, threshold >= threads
    assert (out == count * 4 + any_ * 2 + all_).all()


def test_last_block_sees_all_others(barrier: Library) -> None:
    values = np.arange(500, dtype=np.float32)
    parts, finished, out = (
        np.zeros(500, np.float32),
        np.zeros(1, np.uint32),
        np.zeros(1, np.float32),
    )
    barrier.run("launch_last_block", values, parts, finished, out, 500)
    assert out[0] == values.sum()


def test_64_kilobytes_of_static_shared_memory(barrier: Library) -> None:
    out = np.zeros((20, 256), np.float32)
    barrier.run("launch_large_shared", out, 20)
    expected = np.arange(64).sum() + 64 * (255 - np.arange(256))
    assert (out == expected).all()


def test_tiled_product(barrier: Library) -> None:
    generator = np.random.default_rng(0)
    m, n, k = 50, 37, 45
    a = generator.integers(-4, 5, (m, k)).astype(np.float32)
    b = generator.integers(-4, 5, (k, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    barrier.run("launch_multiply", a, b, c, m, n, k)
    assert (c == a @ b).all()
