"""Dropout and residual: one program a row, with a number of Triton's generator for each element."""

import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x, residual, seed, y, p, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    key = tl.load(seed)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        place = row * cols + col
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        kept = tl.rand(key, place) >= p
        result = tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
        result += tl.where(kept, value / (1.0 - p), 0.0)
        tl.store(y + place, result, mask=inside)


def dropout_add(x, residual, seed, y, *, p, rows, cols):
    """Write residual + dropout(x) into y [rows, cols]."""
    dropout_kernel[(rows,)](x, residual, seed, y, p, cols, BLOCK=1024, num_warps=4)
