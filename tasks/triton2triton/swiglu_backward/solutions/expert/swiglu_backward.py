"""Gradient of SwiGLU in one pass: both halves of a tile are loaded once, and both gradients stored.

The grid covers the matrix in tiles rather than rows; tiles of short rows span several of them.
"""

import triton
import triton.language as tl

WIDEST_TILE = 1024
ELEMENTS_A_PROGRAM = 1024


@triton.jit
def swiglu_backward_kernel(
    x, dy, dx, rows, cols, tiles, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    program = tl.program_id(0)
    row = program // tiles * ROWS + tl.arange(0, ROWS)
    col = program % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    line = row.to(tl.int64)[:, None] * cols
    at = line * 2 + col[None, :]
    gate = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    value = tl.load(x + at + cols, mask=inside, other=0.0, eviction_policy="evict_first")
    gradient = tl.load(
        dy + line + col[None, :], mask=inside, other=0.0, eviction_policy="evict_first"
    ).to(tl.float32)
    share = 1.0 / (1.0 + tl.exp(-gate))
    slope = share * (1.0 + gate * (1.0 - share))
    tl.store(dx + at, gradient * value.to(tl.float32) * slope, mask=inside)
    tl.store(dx + at + cols, gradient * gate * share, mask=inside)


def swiglu_backward(x, dy, dx, *, rows, cols):
    """Write the gradient of x [rows, 2 * cols] into dx."""
    block = min(triton.next_power_of_2(cols), WIDEST_TILE)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    tiles = triton.cdiv(cols, block)
    swiglu_backward_kernel[(triton.cdiv(rows, together) * tiles,)](
        x, dy, dx, rows, cols, tiles, ROWS=together, BLOCK=block, num_warps=4
    )
