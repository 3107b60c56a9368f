"""Sums along a middle axis: one program for 128 columns, which walks along the axis."""

import triton
import triton.language as tl


@triton.jit
def reduce_kernel(x, total, squares, size, inner, BLOCK_S: tl.constexpr, BLOCK_I: tl.constexpr):
    outer = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    sums = tl.zeros((BLOCK_S, BLOCK_I), dtype=tl.float32)
    sums_of_squares = tl.zeros((BLOCK_S, BLOCK_I), dtype=tl.float32)
    for start in range(0, size, BLOCK_S):
        step = start + tl.arange(0, BLOCK_S)
        inside = (step < size)[:, None] & (col < inner)[None, :]
        place = (outer * size + step)[:, None] * inner + col[None, :]
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        sums += value
        sums_of_squares += value * value
    tl.store(total + outer * inner + col, tl.sum(sums, axis=0), mask=col < inner)
    tl.store(squares + outer * inner + col, tl.sum(sums_of_squares, axis=0), mask=col < inner)


def reduce_middle(x, total, squares, *, outer, size, inner):
    """Write total and squares [outer, inner]."""
    block = min(triton.next_power_of_2(inner), 128)
    grid = (outer, triton.cdiv(inner, block))
    reduce_kernel[grid](
        x, total, squares, size, inner, BLOCK_S=1024 // block, BLOCK_I=block, num_warps=4
    )
