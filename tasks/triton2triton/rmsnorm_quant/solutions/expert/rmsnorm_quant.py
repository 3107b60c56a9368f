"""RMS normalisation to int8 in one pass: a row stays in registers for its scale and its maximum.

Short rows share a program, so that a program always moves a few thousand elements.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 2048
ELEMENTS_A_WARP = 1024


@triton.jit
def rmsnorm_quant_kernel(
    x, weight, q, scale, eps, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    at = row.to(tl.int64)[:, None] * cols + col[None, :]
    value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    factor = tl.rsqrt(tl.sum(value * value, axis=1) / cols + eps)
    value = value * factor[:, None] * gain[None, :]
    step = tl.max(tl.abs(value), axis=1) / 127.0
    tl.store(scale + row, step, mask=row < rows)
    inverse = tl.where(step > 0.0, 1.0 / step, 0.0)
    steps = tl.floor(value * inverse[:, None] + 0.5)
    steps = tl.minimum(tl.maximum(steps, -127.0), 127.0)
    tl.store(q + at, steps.to(tl.int8), mask=inside)


def rmsnorm_quant(x, weight, q, scale, *, eps, rows, cols):
    """Normalise x [rows, cols] into steps q [rows, cols] of scale [rows]."""
    block = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // ELEMENTS_A_WARP, 1), 32)
    rmsnorm_quant_kernel[(triton.cdiv(rows, together),)](
        x, weight, q, scale, eps, rows, cols, ROWS=together, BLOCK=block, num_warps=warps
    )
