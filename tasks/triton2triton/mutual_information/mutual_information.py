"""Mutual information in three kernels: joint counts, sums of columns, and the formula."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(fixed, moving, counts, voxels, bins, BLOCK: tl.constexpr):
    pair = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < voxels
    row = tl.load(fixed + pair * voxels + i, mask=inside, other=0).to(tl.int32) * bins // 256
    col = tl.load(moving + pair * voxels + i, mask=inside, other=0).to(tl.int32) * bins // 256
    tl.atomic_add(counts + (pair * bins + row) * bins + col, 1, mask=inside)


@triton.jit
def column_kernel(counts, columns, bins, BLOCK: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    for row in range(bins):
        total += tl.load(counts + (pair * bins + row) * bins + col, mask=col < bins, other=0)
    tl.store(columns + pair * bins + col, total, mask=col < bins)


@triton.jit
def information_kernel(
    counts, columns, weight, joint, information, voxels, bins, BLOCK: tl.constexpr
):
    pair = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    of_col = tl.load(columns + pair * bins + col, mask=col < bins, other=0).to(tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(bins):
        place = (pair * bins + row) * bins + col
        count = tl.load(counts + place, mask=col < bins, other=0)
        tl.store(joint + place, count, mask=col < bins)
        of_row = tl.sum(count, axis=0).to(tl.float32)
        share = count.to(tl.float32) / voxels
        ratio = share / of_row * voxels / of_col * voxels
        sums += tl.where(count > 0, share * tl.log(tl.where(count > 0, ratio, 1.0)), 0.0)
    tl.store(information + pair, tl.load(weight + pair) * tl.sum(sums, axis=0))


def mutual_information(fixed, moving, weight, joint, information, *, pairs, voxels, bins):
    """Write joint [pairs, bins, bins] and information [pairs]."""
    counts = torch.zeros((pairs, bins, bins), dtype=torch.int32, device=fixed.device)
    columns = torch.empty((pairs, bins), dtype=torch.int32, device=fixed.device)
    block = triton.next_power_of_2(bins)
    grid = (triton.cdiv(voxels, 1024), pairs)
    count_kernel[grid](fixed, moving, counts, voxels, bins, BLOCK=1024, num_warps=4)
    column_kernel[(pairs,)](counts, columns, bins, BLOCK=block, num_warps=4)
    information_kernel[(pairs,)](
        counts, columns, weight, joint, information, voxels, bins, BLOCK=block, num_warps=4
    )
