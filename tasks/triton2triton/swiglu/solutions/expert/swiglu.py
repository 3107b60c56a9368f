"""SwiGLU in one pass: both halves of a tile loaded, one result stored.

The grid covers the matrix in tiles rather than rows, so that a few rows fill the device as well as
many; tiles of short rows span several of them.
"""

import triton
import triton.language as tl

WIDEST_TILE = 1024
ELEMENTS_A_PROGRAM = 2048


@triton.jit
def swiglu_kernel(x, y, rows, cols, tiles, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    row = program // tiles * ROWS + tl.arange(0, ROWS)
    col = program % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    line = row.to(tl.int64)[:, None] * cols
    at = line * 2 + col[None, :]
    gate = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    value = tl.load(x + at + cols, mask=inside, other=0.0, eviction_policy="evict_first")
    result = gate / (1.0 + tl.exp(-gate)) * value.to(tl.float32)
    tl.store(y + line + col[None, :], result, mask=inside)


def swiglu(x, y, *, rows, cols):
    """Gate and multiply x [rows, 2 * cols] into y [rows, cols]."""
    block = min(triton.next_power_of_2(cols), WIDEST_TILE)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    tiles = triton.cdiv(cols, block)
    grid = (triton.cdiv(rows, together) * tiles,)
    swiglu_kernel[grid](x, y, rows, cols, tiles, ROWS=together, BLOCK=block, num_warps=4)
