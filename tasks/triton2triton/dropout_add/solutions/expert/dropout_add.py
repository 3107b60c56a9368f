"""Dropout and residual on the flat tensor; a call of the generator serves 4 elements.

A Philox counter gives 4 words of 32 bits, one for the same place in each of 4 neighbouring blocks.
Its 7 rounds are the fewest that pass the BigCrush tests.
"""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def sum_of(value, other, word, threshold, factor):
    kept = word.to(tl.int32, bitcast=True) >= threshold
    return other.to(tl.float32) + tl.where(kept, value.to(tl.float32) * factor, 0.0)


@triton.jit
def add_blocks(x, residual, y, first, words, threshold, factor, total, BLOCK: tl.constexpr):
    for part in tl.static_range(4):
        at = first + part * BLOCK + tl.arange(0, BLOCK)
        inside = at < total
        value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        other = tl.load(residual + at, mask=inside, other=0.0, eviction_policy="evict_first")
        tl.store(y + at, sum_of(value, other, words[part], threshold, factor), mask=inside)


@triton.jit
def dropout_kernel(
    x, residual, seed, y, threshold, factor, total, RAGGED: tl.constexpr, BLOCK: tl.constexpr
):
    program = tl.program_id(0)
    first = program * (4 * BLOCK)  # below 2^30
    words = tl.randint4x(tl.load(seed), program * BLOCK + tl.arange(0, BLOCK), n_rounds=7)
    if RAGGED:
        # A mask of any total makes a thread load its elements one by one.
        if first + 4 * BLOCK <= total:
            for part in tl.static_range(4):
                at = first + part * BLOCK + tl.arange(0, BLOCK)
                value = tl.load(x + at, eviction_policy="evict_first")
                other = tl.load(residual + at, eviction_policy="evict_first")
                tl.store(y + at, sum_of(value, other, words[part], threshold, factor))
        else:
            add_blocks(x, residual, y, first, words, threshold, factor, total, BLOCK)
    else:
        add_blocks(x, residual, y, first, words, threshold, factor, total, BLOCK)


def dropout_add(x, residual, seed, y, *, p, rows, cols):
    """Write residual + dropout(x) into y [rows, cols]."""
    total = rows * cols
    # Of all 2^32 words, seen as signed numbers, a share of p is below the threshold.
    threshold = min(round(p * 2**32), 2**32 - 1) - 2**31
    dropout_kernel[(triton.cdiv(total, 4 * BLOCK),)](
        x, residual, seed, y, threshold, 1.0 / (1.0 - p), total,
        RAGGED=total % 16 != 0, BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
