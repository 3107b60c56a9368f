"""Weight normalisation and its gradients in one pass: a row stays in registers.

Short rows share a program. Rows too long for registers are walked over twice, the second time
backwards, from what is still in the cache.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 1024
LONGEST = 8192
BYTES_A_WARP = 4096  # of each input: up to eight vectors of 16 bytes a thread
STEP = 8192


@triton.jit
def rows_kernel(
    v, g, dw, w, dv, dg, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = first + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    place = first * cols
    at = tl.arange(0, ROWS)[:, None] * cols + col[None, :]
    value = tl.load(v + place + at, mask=inside, other=0.0).to(tl.float32)
    upper = tl.load(dw + place + at, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(g + row, mask=row < rows, other=0.0)
    inverse = 1.0 / tl.sqrt(tl.sum(value * value, axis=1) + 1e-12)
    along = tl.sum(value * upper, axis=1) * inverse
    tl.store(dg + row, along, mask=row < rows)
    gain = (gain * inverse)[:, None]
    slope = (along * inverse)[:, None]
    tl.store(w + place + at, gain * value, mask=inside, eviction_policy="evict_first")
    tl.store(
        dv + place + at, gain * (upper - slope * value), mask=inside, eviction_policy="evict_first"
    )


@triton.jit
def long_rows_kernel(v, g, dw, w, dv, dg, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = row.to(tl.int64) * cols
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, cols, BLOCK):
        col = first + tl.arange(0, BLOCK)
        value = tl.load(v + start + col, mask=col < cols, other=0.0).to(tl.float32)
        upper = tl.load(dw + start + col, mask=col < cols, other=0.0).to(tl.float32)
        squares += value * value
        products += value * upper
    inverse = 1.0 / tl.sqrt(tl.sum(squares, axis=0) + 1e-12)
    along = tl.sum(products, axis=0) * inverse
    tl.store(dg + row, along)
    gain = tl.load(g + row) * inverse
    slope = along * inverse
    steps = tl.cdiv(cols, BLOCK)
    for step in range(steps):
        col = (steps - 1 - step) * BLOCK + tl.arange(0, BLOCK)
        at = start + col
        inside = col < cols
        value = tl.load(v + at, mask=inside, other=0.0, eviction_policy="evict_first")
        upper = tl.load(dw + at, mask=inside, other=0.0, eviction_policy="evict_first")
        value = value.to(tl.float32)
        tl.store(w + at, gain * value, mask=inside)
        tl.store(dv + at, gain * (upper.to(tl.float32) - slope * value), mask=inside)


def weight_norm_backward(v, g, dw, w, dv, dg, *, rows, cols):
    """Write w and dv [rows, cols] and dg [rows]."""
    elements_a_warp = BYTES_A_WARP // v.element_size()
    if cols > LONGEST:
        long_rows_kernel[(rows,)](v, g, dw, w, dv, dg, cols, BLOCK=STEP, num_warps=16)
        return
    block = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // elements_a_warp, 1), 16)
    rows_kernel[(triton.cdiv(rows, together),)](
        v, g, dw, w, dv, dg, rows, cols, ROWS=together, BLOCK=block, num_warps=warps
    )
