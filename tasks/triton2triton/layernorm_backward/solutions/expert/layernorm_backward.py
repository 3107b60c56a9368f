"""Gradients of layer normalisation in one pass over x and dy.

As many programs as the device runs at once walk over the rows. A row stays in registers between its
sums and its gradient. Each program adds up its parts of the parameters' gradients, and a second,
small kernel adds the parts in a fixed order.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 1024
ELEMENTS_A_WARP = 256
WARPS_AT_ONCE = 4224  # 32 on each of 132 multiprocessors


@triton.jit
def rows_kernel(
    x, weight, mean, rstd, dy, dx, of_weight, of_bias, rows, cols,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)[None, :]
    weights = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    biases = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(program * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        at = row.to(tl.int64)[:, None] * cols + col[None, :]
        value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        upper = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
        centre = tl.load(mean + row, mask=row < rows, other=0.0)[:, None]
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        upper = upper.to(tl.float32)
        normal = tl.where(inside, (value.to(tl.float32) - centre) * scale, 0.0)
        gradient = upper * gain
        average = tl.sum(gradient, axis=1)[:, None] / cols
        along = tl.sum(gradient * normal, axis=1)[:, None] / cols
        tl.store(dx + at, scale * (gradient - average - normal * along), mask=inside)
        weights += upper * normal
        biases += upper
    place = program * cols + col
    tl.store(of_weight + place, tl.sum(weights, axis=0), mask=col < cols)
    tl.store(of_bias + place, tl.sum(biases, axis=0), mask=col < cols)


@triton.jit
def sum_kernel(
    of_weight, of_bias, dweight, dbias, parts, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    weights = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    biases = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & (col < cols)[None, :]
        at = part[:, None] * cols + col[None, :]
        weights += tl.load(of_weight + at, mask=inside, other=0.0)
        biases += tl.load(of_bias + at, mask=inside, other=0.0)
    tl.store(dweight + col, tl.sum(weights, axis=0), mask=col < cols)
    tl.store(dbias + col, tl.sum(biases, axis=0), mask=col < cols)


def layernorm_backward(x, weight, mean, rstd, dy, dx, dweight, dbias, *, rows, cols):
    """Write the gradients of x [rows, cols], weight [cols] and bias [cols]."""
    block = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // ELEMENTS_A_WARP, 1), 32)
    parts = min(triton.cdiv(rows, together), WARPS_AT_ONCE // warps)
    of_weight = torch.empty((parts, cols), dtype=torch.float32, device=x.device)
    of_bias = torch.empty_like(of_weight)
    rows_kernel[(parts,)](
        x, weight, mean, rstd, dy, dx, of_weight, of_bias, rows, cols,
        ROWS=together, BLOCK=block, num_warps=warps,
    )  # fmt: skip
    sum_kernel[(triton.cdiv(cols, 32),)](
        of_weight, of_bias, dweight, dbias, parts, cols, PARTS=64, BLOCK=32, num_warps=8
    )
