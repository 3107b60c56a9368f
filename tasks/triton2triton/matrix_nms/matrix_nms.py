"""Matrix NMS in four kernels: areas, overlaps of 64 x 64 pairs, and two walks over them."""

import torch
import triton
import triton.language as tl


@triton.jit
def area_kernel(mask, area, pixels, BLOCK: tl.constexpr):
    own = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, pixels, BLOCK):
        pixel = start + tl.arange(0, BLOCK)
        value = tl.load(mask + own * pixels + pixel, mask=pixel < pixels, other=0)
        total += value.to(tl.int32)
    tl.store(area + own, tl.sum(total, axis=0).to(tl.float32))


@triton.jit
def overlap_kernel(
    mask, label, area, overlap, objects, pixels, BLOCK: tl.constexpr, BLOCK_P: tl.constexpr
):
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    col = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    both = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, pixels, BLOCK_P):
        pixel = start + tl.arange(0, BLOCK_P)
        of_row = (row < objects)[:, None] & (pixel < pixels)[None, :]
        of_col = (col < objects)[:, None] & (pixel < pixels)[None, :]
        a = tl.load(mask + row[:, None] * pixels + pixel[None, :], mask=of_row, other=0)
        b = tl.load(mask + col[:, None] * pixels + pixel[None, :], mask=of_col, other=0)
        both += tl.dot(a.to(tl.float16), tl.trans(b.to(tl.float16)))
    row_area = tl.load(area + row, mask=row < objects, other=0.0)
    col_area = tl.load(area + col, mask=col < objects, other=0.0)
    union = row_area[:, None] + col_area[None, :] - both
    row_label = tl.load(label + row, mask=row < objects, other=0)
    col_label = tl.load(label + col, mask=col < objects, other=0)
    counts = (union > 0.0) & (row_label[:, None] == col_label[None, :])
    share = tl.where(counts, both / tl.where(counts, union, 1.0), 0.0)
    share = tl.where(row[:, None] < col[None, :], share, 0.0)
    inside = (row < objects)[:, None] & (col < objects)[None, :]
    tl.store(overlap + row[:, None] * objects + col[None, :], share, mask=inside)


@triton.jit
def compensation_kernel(overlap, comp, objects, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    col = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    most = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(0, objects, BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        inside = (row < objects)[:, None] & (col < objects)[None, :]
        place = row[:, None] * objects + col[None, :]
        most = tl.maximum(most, tl.load(overlap + place, mask=inside, other=0.0))
    tl.store(comp + col, tl.max(most, axis=0), mask=col < objects)


@triton.jit
def lower_kernel(
    overlap, comp, score, lowered, sigma, objects, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    col = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    least = tl.full((BLOCK_R, BLOCK_C), 1.0, dtype=tl.float32)
    for start in range(0, objects, BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        inside = (row[:, None] < col[None, :]) & (col < objects)[None, :]
        place = row[:, None] * objects + col[None, :]
        share = tl.load(overlap + place, mask=inside, other=0.0)
        own = tl.load(comp + row, mask=row < objects, other=0.0)[:, None]
        factor = tl.exp(-sigma * (share * share - own * own))
        least = tl.minimum(least, tl.where(inside, factor, 1.0))
    value = tl.load(score + col, mask=col < objects, other=0.0)
    tl.store(lowered + col, value * tl.min(least, axis=0), mask=col < objects)


def matrix_nms(mask, label, score, lowered, *, sigma, objects, pixels):
    """Write lowered [objects]."""
    area = torch.empty(objects, dtype=torch.float32, device=mask.device)
    comp = torch.empty(objects, dtype=torch.float32, device=mask.device)
    overlap = torch.empty((objects, objects), dtype=torch.float32, device=mask.device)
    area_kernel[(objects,)](mask, area, pixels, BLOCK=1024, num_warps=4)
    blocks = triton.cdiv(objects, 64)
    overlap_kernel[(blocks, blocks)](
        mask, label, area, overlap, objects, pixels, BLOCK=64, BLOCK_P=64, num_warps=4
    )
    compensation_kernel[(blocks,)](overlap, comp, objects, BLOCK_R=32, BLOCK_C=64, num_warps=4)
    lower_kernel[(blocks,)](
        overlap, comp, score, lowered, sigma, objects, BLOCK_R=32, BLOCK_C=64, num_warps=4
    )
