"""Parts of attention put together: a program takes several heads, and several parts at a time.

The parts' weights are known before the parts are read, so that many loads are on their way at once.
"""

import triton
import triton.language as tl

ELEMENTS_A_PART = 1024
MOST_PARTS_AT_ONCE = 4


@triton.jit
def merge_kernel(
    y, lse, merged, lse_new, parts, rows, dim,
    PARTS: tl.constexpr, DEEP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # a head of a token
    known = row < rows
    column = tl.arange(0, BLOCK)
    every = tl.arange(0, PARTS)
    seen = known[:, None] & (every < parts)[None, :]
    low = float("-inf")
    levels = tl.load(lse + every.to(tl.int64)[None, :] * rows + row[:, None], mask=seen, other=low)
    largest = tl.where(known, tl.max(levels, axis=1), 0.0)
    total = tl.sum(tl.exp(levels - largest[:, None]), axis=1)
    total = tl.where(known, total, 1.0)
    result = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, DEEP):
        part = first + tl.arange(0, DEEP)
        valid = known[:, None] & (part < parts)[None, :]
        place = part.to(tl.int64)[None, :] * rows + row[:, None]
        share = tl.exp(tl.load(lse + place, mask=valid, other=low) - largest[:, None])
        lanes = valid[:, :, None] & (column < dim)[None, None, :]
        source = y + place[:, :, None] * dim + column[None, None, :]
        value = tl.load(source, mask=lanes, other=0.0, eviction_policy="evict_first")
        result += tl.sum(share[:, :, None] * value.to(tl.float32), axis=1)
    at = row.to(tl.int64)[:, None] * dim + column[None, :]
    inside = known[:, None] & (column < dim)[None, :]
    tl.store(merged + at, result / total[:, None], mask=inside)
    tl.store(lse_new + row, largest + tl.log(total), mask=known)


def merge_attention(y, lse, merged, lse_new, *, parts, tokens, heads, dim):
    """Write merged [tokens, heads, dim] and lse_new [tokens, heads]."""
    rows, block = tokens * heads, triton.next_power_of_2(dim)
    together = max(1, min(ELEMENTS_A_PART // block, triton.next_power_of_2(rows)))
    padded = triton.next_power_of_2(parts)
    merge_kernel[(triton.cdiv(rows, together),)](
        y, lse, merged, lse_new, parts, rows, dim,
        PARTS=padded, DEEP=min(padded, MOST_PARTS_AT_ONCE), ROWS=together, BLOCK=block,
        num_warps=max(together * block // 256, 1),
    )  # fmt: skip
