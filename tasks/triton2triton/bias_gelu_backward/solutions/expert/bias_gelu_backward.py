"""Gradients of bias and GELU in one pass over x and dy.

A program walks down a strip of columns through its share of the rows, the next of which may be on
their way to shared memory meanwhile, and adds up its part of the bias's gradient. A second, small
kernel adds the parts in a fixed order.
"""

import torch
import triton
import triton.language as tl

ROWS_AT_ONCE = 8
WIDEST_STRIP = 256
PROGRAMS_WANTED = 528  # 4 on each of 132 multiprocessors


@triton.jit
def tail(z):
    """Of the normal distribution, over its bell: Abramowitz and Stegun 7.1.26, to 8e-8."""
    far = 0.7107068705 + z * (-0.7265760135 + z * 0.5307027145)
    return z * (0.127414796 + z * (-0.142248368 + z * far))


@triton.jit
def strips_kernel(
    x, bias, dy, dx, of_bias, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.program_id(1)
    shift = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)[None, :]
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in tl.range(part * ROWS, rows, tl.num_programs(1) * ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        at = row.to(tl.int64)[:, None] * cols + col[None, :]
        u = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        gradient = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
        u = u.to(tl.float32) + shift
        bell = tl.exp2(u * u * -0.7213475204444817)
        root = tl.rsqrt(1.0 + 0.2316418882 * tl.abs(u))  # less work than a division
        beyond = bell * tail(root * root)
        below = tl.where(u < 0.0, beyond, 1.0 - beyond)
        slope = below + u * bell * 0.3989422804014327
        result = gradient.to(tl.float32) * slope
        tl.store(dx + at, result, mask=inside)
        total += result
    tl.store(of_bias + part * cols + col, tl.sum(total, axis=0), mask=col < cols)


@triton.jit
def sum_kernel(of_bias, dbias, parts, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & (col < cols)[None, :]
        total += tl.load(of_bias + part[:, None] * cols + col[None, :], mask=inside, other=0.0)
    tl.store(dbias + col, tl.sum(total, axis=0), mask=col < cols)


def bias_gelu_backward(x, bias, dy, dx, dbias, *, rows, cols):
    """Write the gradients of x [rows, cols] and bias [cols]."""
    block = min(triton.next_power_of_2(cols), WIDEST_STRIP)
    strips = triton.cdiv(cols, block)
    parts = min(triton.cdiv(rows, ROWS_AT_ONCE), max(PROGRAMS_WANTED // strips, 1))
    # The next rows of 16-bit types come into shared memory meanwhile. Rows of float32 have as many
    # bytes under way as it is, and copies of unaligned ones would be of a single element each.
    stages = 3 if x.element_size() == 2 else 1
    of_bias = torch.empty((parts, cols), dtype=torch.float32, device=x.device)
    strips_kernel[(strips, parts)](
        x, bias, dy, dx, of_bias, rows, cols, ROWS=ROWS_AT_ONCE, BLOCK=block, STAGES=stages,
        num_warps=8,
    )  # fmt: skip
    sum_kernel[(triton.cdiv(cols, 32),)](
        of_bias, dbias, parts, cols, PARTS=64, BLOCK=32, num_warps=8
    )
