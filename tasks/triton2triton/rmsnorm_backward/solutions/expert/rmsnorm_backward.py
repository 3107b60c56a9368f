"""Gradients of RMS normalisation in one pass over x and dy.

As many programs as the device runs at once walk over the rows, and ask for the next ones before
they work on theirs. A row stays in registers between its sum and its gradient. Each program adds up
its part of the weight's gradient, and a second, small kernel adds the parts in a fixed order.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 2048
ELEMENTS_A_WARP = 512
WIDE = 8192  # elements of a row from which on a thread has half as many
WARPS_AT_ONCE = 4224  # 32 on each of 132 multiprocessors


@triton.jit
def rows_kernel(
    x, weight, rstd, dy, dx, of_weight, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    program = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)[None, :]
    weights = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    row = program * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    at = row.to(tl.int64)[:, None] * cols + col[None, :]
    next_value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
    next_upper = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
    for first in range(program * ROWS, rows, tl.num_programs(0) * ROWS):
        value, upper = next_value, next_upper
        later = first + tl.num_programs(0) * ROWS + tl.arange(0, ROWS)
        ahead = (later < rows)[:, None] & (col < cols)[None, :]
        there = later.to(tl.int64)[:, None] * cols + col[None, :]
        next_value = tl.load(x + there, mask=ahead, other=0.0, eviction_policy="evict_first")
        next_upper = tl.load(dy + there, mask=ahead, other=0.0, eviction_policy="evict_first")
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        at = row.to(tl.int64)[:, None] * cols + col[None, :]
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        upper = upper.to(tl.float32)
        normal = value.to(tl.float32) * scale
        gradient = upper * gain
        along = tl.sum(gradient * normal, axis=1)[:, None] / cols
        tl.store(dx + at, scale * (gradient - normal * along), mask=inside)
        weights += upper * normal
    tl.store(of_weight + program * cols + col, tl.sum(weights, axis=0), mask=col < cols)


@triton.jit
def sum_kernel(of_weight, dweight, parts, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & (col < cols)[None, :]
        total += tl.load(of_weight + part[:, None] * cols + col[None, :], mask=inside, other=0.0)
    tl.store(dweight + col, tl.sum(total, axis=0), mask=col < cols)


def rmsnorm_backward(x, weight, rstd, dy, dx, dweight, *, rows, cols):
    """Write the gradients of x [rows, cols] and weight [cols] into dx and dweight."""
    block = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    elements = ELEMENTS_A_WARP if block < WIDE else ELEMENTS_A_WARP // 2
    warps = min(max(together * block // elements, 1), 32)
    parts = min(triton.cdiv(rows, together), WARPS_AT_ONCE // warps)
    of_weight = torch.empty((parts, cols), dtype=torch.float32, device=x.device)
    rows_kernel[(parts,)](
        x, weight, rstd, dy, dx, of_weight, rows, cols,
        ROWS=together, BLOCK=block, num_warps=warps,
    )  # fmt: skip
    sum_kernel[(triton.cdiv(cols, 32),)](
        of_weight, dweight, parts, cols, PARTS=64, BLOCK=32, num_warps=8
    )
