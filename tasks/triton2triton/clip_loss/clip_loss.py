"""Contrastive loss: lengths, then rows of the similarities once for images and once for texts.

A program has 64 rows, walks over all columns with a running maximum, and keeps no similarities.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def length_kernel(x, inverse, dim, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, dim, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * dim + col, mask=col < dim, other=0.0).to(tl.float32)
        squares += value * value
    tl.store(inverse + row, 1.0 / tl.maximum(tl.sqrt(tl.sum(squares, axis=0)), 1e-12))


@triton.jit
def rows_kernel(
    these, those, inverse, other_inverse, scale, summed, own, pairs, dim,
    WITH_OWN: tl.constexpr, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    factor = tl.load(inverse + row, mask=row < pairs, other=0.0) * tl.load(scale)
    peak = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    same = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, pairs, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        product = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for deep in range(0, dim, BLOCK_D):
            d = deep + tl.arange(0, BLOCK_D)
            of_row = (row < pairs)[:, None] & (d < dim)[None, :]
            of_col = (col < pairs)[:, None] & (d < dim)[None, :]
            a = tl.load(these + row[:, None] * dim + d[None, :], mask=of_row, other=0.0)
            b = tl.load(those + col[:, None] * dim + d[None, :], mask=of_col, other=0.0)
            product += tl.dot(a, tl.trans(b), input_precision="ieee")
        other = tl.load(other_inverse + col, mask=col < pairs, other=0.0)
        likeness = product * factor[:, None] * other[None, :]
        if WITH_OWN:
            same += tl.sum(tl.where(row[:, None] == col[None, :], likeness, 0.0), axis=1)
        likeness = tl.where((col < pairs)[None, :], likeness, float("-inf"))
        higher = tl.maximum(peak, tl.max(likeness, axis=1))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(likeness - higher[:, None]), axis=1)
        peak = higher
    tl.store(summed + row, peak + tl.log(total), mask=row < pairs)
    if WITH_OWN:
        tl.store(own + row, same, mask=row < pairs)


def clip_loss(image, text, scale, of_image, of_text, own, *, pairs, dim):
    """Write of_image, of_text and own [pairs]."""
    inverse = torch.empty((2, pairs), dtype=torch.float32, device=image.device)
    for x, lengths in ((image, inverse[0]), (text, inverse[1])):
        length_kernel[(pairs,)](x, lengths, dim, BLOCK=512, num_warps=4)
    grid = (triton.cdiv(pairs, 64),)
    rows_kernel[grid](
        image, text, inverse[0], inverse[1], scale, of_image, own, pairs, dim,
        WITH_OWN=True, BLOCK=64, BLOCK_D=32, num_warps=4,
    )  # fmt: skip
    rows_kernel[grid](
        text, image, inverse[1], inverse[0], scale, of_text, own, pairs, dim,
        WITH_OWN=False, BLOCK=64, BLOCK_D=32, num_warps=4,
    )  # fmt: skip
