"""Parts of attention put together: a program takes several heads, and several parts at a time.

Where programs are many, the parts' weights are known before the parts are read, so that parts that
count for nothing are not read. Where they are few, no other programs fill the wait for weights: the
first parts are asked for before their weights, and the next ones before the first are added.
"""

import triton
import triton.language as tl

ELEMENTS_A_PART = 1024
MOST_PARTS_AT_ONCE = 4
PROGRAMS_ENOUGH = 528  # 4 on each of 132 multiprocessors
MANY_PROGRAMS = 2112  # more than run at once


@triton.jit
def look(y, place, counts, column, dim):
    """What heads have in the parts that count."""
    source = y + place[:, :, None] * dim + column[None, None, :]
    lanes = counts[:, :, None] & (column < dim)[None, None, :]
    return tl.load(source, mask=lanes, other=0.0, eviction_policy="evict_first")


@triton.jit
def merge_kernel(
    y, lse, merged, lse_new, parts, rows, units,
    UNIT: tl.constexpr, EARLY: tl.constexpr, PARTS: tl.constexpr, DEEP: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    dim = units * UNIT  # a multiple that the compiler knows: rows are read in whole vectors
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # a head of a token
    known = row < rows
    column = tl.arange(0, BLOCK)
    every = tl.arange(0, PARTS)
    seen = known[:, None] & (every < parts)[None, :]
    low = float("-inf")
    levels = tl.load(lse + every.to(tl.int64)[None, :] * rows + row[:, None], mask=seen, other=low)
    part = tl.arange(0, DEEP)
    valid = known[:, None] & (part < parts)[None, :]
    place = part.to(tl.int64)[None, :] * rows + row[:, None]
    if EARLY:
        value = look(y, place, valid, column, dim)
    largest = tl.where(known, tl.max(levels, axis=1), 0.0)
    total = tl.sum(tl.exp(levels - largest[:, None]), axis=1)
    total = tl.where(known, total, 1.0)
    result = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, DEEP):
        share = tl.exp(tl.load(lse + place, mask=valid, other=low) - largest[:, None])
        if not EARLY:
            value = look(y, place, share > 0.0, column, dim)
        part = first + DEEP + tl.arange(0, DEEP)
        valid = known[:, None] & (part < parts)[None, :]
        place = part.to(tl.int64)[None, :] * rows + row[:, None]
        if EARLY and PARTS > DEEP:
            coming = look(y, place, valid, column, dim)
        result += tl.sum(share[:, :, None] * value.to(tl.float32), axis=1)
        if EARLY and PARTS > DEEP:
            value = coming
    at = row.to(tl.int64)[:, None] * dim + column[None, :]
    inside = known[:, None] & (column < dim)[None, :]
    tl.store(merged + at, result / total[:, None], mask=inside)
    tl.store(lse_new + row, largest + tl.log(total), mask=known)


def merge_attention(y, lse, merged, lse_new, *, parts, tokens, heads, dim):
    """Write merged [tokens, heads, dim] and lse_new [tokens, heads]."""
    rows, block = tokens * heads, triton.next_power_of_2(dim)
    together = max(1, min(ELEMENTS_A_PART // block, triton.next_power_of_2(rows)))
    padded = triton.next_power_of_2(parts)
    unit = 16 // y.element_size()
    if dim % unit or y.data_ptr() % 16 or merged.data_ptr() % 16:
        unit = 1
    # Few rows are spread over many programs.
    while together > 1 and triton.cdiv(rows, together) < PROGRAMS_ENOUGH:
        together //= 2
    programs = triton.cdiv(rows, together)
    merge_kernel[(programs,)](
        y, lse, merged, lse_new, parts, rows, dim // unit,
        UNIT=unit, EARLY=programs <= MANY_PROGRAMS, PARTS=padded,
        DEEP=min(padded, MOST_PARTS_AT_ONCE), ROWS=together, BLOCK=block,
        num_warps=max(together * block // 256, 1),
    )  # fmt: skip
