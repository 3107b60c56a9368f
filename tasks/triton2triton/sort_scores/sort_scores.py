"""Sorted rows: one program a row, or some short ones, sorted by key and column in 64 bits."""

import triton
import triton.language as tl


@triton.jit
def sort_kernel(scores, ranked, order, rows, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    col = tl.arange(0, BLOCK_C)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    first = row[:, None] * cols
    value = tl.load(scores + first + col[None, :], mask=inside, other=0.0).to(tl.float32)
    bits = tl.where(value == 0.0, 0.0, value).to(tl.int32, bitcast=True)
    rising = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    falling = tl.where(inside, -rising, 2147483647)  # what is outside comes last
    both = tl.sort(falling * 4294967296 + col[None, :])
    place = both & 4294967295
    tl.store(order + first + col[None, :], place.to(tl.int32), mask=inside)
    found = tl.load(scores + first + place, mask=inside, other=0.0)
    tl.store(ranked + first + col[None, :], found, mask=inside)


def sort_scores(scores, ranked, order, *, rows, cols):
    """Write ranked and order [rows, cols]."""
    block = max(triton.next_power_of_2(cols), 16)
    some = max(512 // block, 1)
    sort_kernel[(triton.cdiv(rows, some),)](
        scores, ranked, order, rows, cols, BLOCK_R=some, BLOCK_C=block, num_warps=4
    )
