"""Points partitioned in three kernels: counts of blocks, their sums, and the points moved."""

import torch
import triton
import triton.language as tl


@triton.jit
def is_kept(point, i, points, features, reach, low, high, near):
    """Whether the points of the places i are kept."""
    x = tl.abs(tl.load(point + i * features, mask=i < points, other=0.0))
    y = tl.abs(tl.load(point + i * features + 1, mask=i < points, other=0.0))
    z = tl.load(point + i * features + 2, mask=i < points, other=0.0)
    inside = (x < reach) & (y < reach) & (z >= low) & (z < high)
    return inside & ((x >= near) | (y >= near)) & (i < points)


@triton.jit
def count_kernel(point, sums, points, features, reach, low, high, near, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    kept = is_kept(point, i, points, features, reach, low, high, near)
    tl.store(sums + block, tl.sum(kept.to(tl.int32), axis=0))


@triton.jit
def scan_kernel(sums, count, blocks, BLOCK: tl.constexpr):
    before = 0
    for start in range(0, blocks, BLOCK):
        block = start + tl.arange(0, BLOCK)
        own = tl.load(sums + block, mask=block < blocks, other=0)
        tl.store(sums + block, before + tl.cumsum(own, axis=0) - own, mask=block < blocks)
        before += tl.sum(own, axis=0)
    tl.store(count, before)


@triton.jit
def move_kernel(
    point, sums, count, moved, index, points, features, reach, low, high, near,
    BLOCK: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    kept = is_kept(point, i, points, features, reach, low, high, near)
    flag = kept.to(tl.int32)
    before = (tl.load(sums + block) + tl.cumsum(flag, axis=0) - flag).to(tl.int64)
    place = tl.where(kept, before, tl.load(count) + i - before)
    tl.store(index + place, i.to(tl.int32), mask=i < points)
    for feature in range(features):
        value = tl.load(point + i * features + feature, mask=i < points, other=0.0)
        tl.store(moved + place * features + feature, value, mask=i < points)


def partition_points(point, moved, index, count, *, reach, low, high, near, points, features):
    """Write moved [points, features], index [points] and count [1]."""
    blocks = triton.cdiv(points, 256)
    sums = torch.empty(blocks, dtype=torch.int32, device=point.device)
    bounds = (points, features, reach, low, high, near)
    count_kernel[(blocks,)](point, sums, *bounds, BLOCK=256, num_warps=4)
    scan_kernel[(1,)](sums, count, blocks, BLOCK=1024, num_warps=4)
    move_kernel[(blocks,)](point, sums, count, moved, index, *bounds, BLOCK=256, num_warps=4)
