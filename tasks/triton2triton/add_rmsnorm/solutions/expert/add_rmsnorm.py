"""Residual addition and RMS normalisation in one pass: sums stay in registers until scaled.

Short rows share a program, so that a program always moves a few thousand elements.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 2048
ELEMENTS_A_WARP = 512


@triton.jit
def add_rmsnorm_kernel(
    x, residual, weight, total, y, eps, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    at = row.to(tl.int64)[:, None] * cols + col[None, :]
    left = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
    right = tl.load(residual + at, mask=inside, other=0.0, eviction_policy="evict_first")
    added = left.to(tl.float32) + right.to(tl.float32)
    tl.store(total + at, added, mask=inside)
    gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(added * added, axis=1) / cols + eps)
    tl.store(y + at, added * scale[:, None] * gain[None, :], mask=inside)


def add_rmsnorm(x, residual, weight, total, y, *, eps, rows, cols):
    """Write the sum of x and residual [rows, cols], and its normalisation."""
    block = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // ELEMENTS_A_WARP, 1), 32)
    add_rmsnorm_kernel[(triton.cdiv(rows, together),)](
        x, residual, weight, total, y, eps, rows, cols,
        ROWS=together, BLOCK=block, num_warps=warps,
    )  # fmt: skip
