"""Top-k filtering: one program a row, or some short ones, which finds the k-th logit bit by bit.

For each bit it walks along the row and counts the logits that reach what it tries.
"""

import triton
import triton.language as tl


@triton.jit
def values_of(logits, row, col, rows, vocab):
    """A block of logits, minus infinity outside of them."""
    inside = (row < rows)[:, None] & (col < vocab)[None, :]
    place = row[:, None] * vocab + col[None, :]
    return tl.load(logits + place, mask=inside, other=float("-inf")).to(tl.float32)


@triton.jit
def keys_of(value):
    """Integers of 32 bits in the order of the values; both zeros have the same."""
    bits = tl.where(value == 0.0, 0.0, value).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64) + 2147483648


@triton.jit
def top_k_kernel(logits, k, probability, rows, vocab, BLOCK_R: tl.constexpr, BLOCK_V: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    wanted = tl.load(k + row, mask=row < rows, other=1)
    bit = tl.full((BLOCK_R,), 2147483648, dtype=tl.int64)
    least = tl.zeros((BLOCK_R,), dtype=tl.int64)
    for _ in range(32):
        tried = least + bit
        counts = tl.zeros((BLOCK_R, BLOCK_V), dtype=tl.int32)
        for start in range(0, vocab, BLOCK_V):
            col = start + tl.arange(0, BLOCK_V)
            key = keys_of(values_of(logits, row, col, rows, vocab))
            counts += (key >= tried[:, None]).to(tl.int32)
        count = tl.sum(counts, axis=1)
        least = tl.where(count >= wanted, tried, least)
        bit = bit >> 1

    peaks = tl.full((BLOCK_R, BLOCK_V), float("-inf"), dtype=tl.float32)
    for start in range(0, vocab, BLOCK_V):
        col = start + tl.arange(0, BLOCK_V)
        peaks = tl.maximum(peaks, values_of(logits, row, col, rows, vocab))
    peak = tl.where(row < rows, tl.max(peaks, axis=1), 0.0)[:, None]
    sums = tl.zeros((BLOCK_R, BLOCK_V), dtype=tl.float32)
    for start in range(0, vocab, BLOCK_V):
        col = start + tl.arange(0, BLOCK_V)
        value = values_of(logits, row, col, rows, vocab)
        sums += tl.where(keys_of(value) >= least[:, None], tl.exp(value - peak), 0.0)
    total = tl.sum(sums, axis=1)
    total = tl.where(row < rows, total, 1.0)[:, None]
    for start in range(0, vocab, BLOCK_V):
        col = start + tl.arange(0, BLOCK_V)
        value = values_of(logits, row, col, rows, vocab)
        share = tl.where(keys_of(value) >= least[:, None], tl.exp(value - peak) / total, 0.0)
        inside = (row < rows)[:, None] & (col < vocab)[None, :]
        tl.store(probability + row[:, None] * vocab + col[None, :], share, mask=inside)


def top_k_filter(logits, k, probability, *, rows, vocab):
    """Write probability [rows, vocab]."""
    block = min(triton.next_power_of_2(vocab), 1024)
    some = min(1024 // block, 32)
    top_k_kernel[(triton.cdiv(rows, some),)](
        logits, k, probability, rows, vocab, BLOCK_R=some, BLOCK_V=block, num_warps=4
    )
