"""Draws from nuclei: one program a row, or some short ones, which walks along it 33 times.

A column's weight is its probability beside the likeliest one's. The least weight of the nucleus is
found bit by bit: the largest number such that all columns which reach it sum up to top_p.
"""

import triton
import triton.language as tl


@triton.jit
def heated(logits, temperature, row, col, rows, vocab):
    """A block of logits by their rows' temperatures, minus infinity outside of them.

    Logits of temperature 0 stay as they are.
    """
    inside = (row < rows)[:, None] & (col < vocab)[None, :]
    heat = tl.load(temperature + row, mask=row < rows, other=1.0)
    heat = tl.where(heat == 0.0, 1.0, heat)
    place = row[:, None] * vocab + col[None, :]
    value = tl.load(logits + place, mask=inside, other=0.0).to(tl.float32)
    return tl.where(inside, value / heat[:, None], float("-inf"))


@triton.jit
def weighed(logits, temperature, peak, row, col, rows, vocab):
    """How likely a block of columns is beside the likeliest; of temperature 0, that one alone."""
    score = heated(logits, temperature, row, col, rows, vocab)
    heat = tl.load(temperature + row, mask=row < rows, other=1.0)
    alone = tl.where(score == peak, 1.0, 0.0)
    return tl.where((heat == 0.0)[:, None], alone, tl.exp(score - peak))


@triton.jit
def top_p_kernel(
    logits, temperature, top_p, seed, token, rows, vocab,
    BLOCK_R: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    share = tl.load(top_p + row, mask=row < rows, other=1.0)
    peaks = tl.full((BLOCK_R, BLOCK_V), float("-inf"), dtype=tl.float32)
    for start in range(0, vocab, BLOCK_V):
        col = start + tl.arange(0, BLOCK_V)
        peaks = tl.maximum(peaks, heated(logits, temperature, row, col, rows, vocab))
    peak = tl.where(row < rows, tl.max(peaks, axis=1), 0.0)[:, None]

    sums = tl.zeros((BLOCK_R, BLOCK_V), dtype=tl.float32)
    for start in range(0, vocab, BLOCK_V):
        col = start + tl.arange(0, BLOCK_V)
        sums += weighed(logits, temperature, peak, row, col, rows, vocab)
    wanted = share * tl.sum(sums, axis=1)
    least = tl.zeros((BLOCK_R,), dtype=tl.int32)
    for step in range(30):  # 1, the largest weight, has no higher bit
        tried = least + (1 << (29 - step))
        limit = tried.to(tl.float32, bitcast=True)
        sums = tl.zeros((BLOCK_R, BLOCK_V), dtype=tl.float32)
        for start in range(0, vocab, BLOCK_V):
            col = start + tl.arange(0, BLOCK_V)
            weight = weighed(logits, temperature, peak, row, col, rows, vocab)
            sums += tl.where(weight >= limit[:, None], weight, 0.0)
        least = tl.where(tl.sum(sums, axis=1) >= wanted, tried, least)
    limit = tl.minimum(least.to(tl.float32, bitcast=True), 1.0)
    limit = tl.where(share < 1.0, limit, 0.0)

    sums = tl.zeros((BLOCK_R, BLOCK_V), dtype=tl.float32)
    for start in range(0, vocab, BLOCK_V):
        col = start + tl.arange(0, BLOCK_V)
        weight = weighed(logits, temperature, peak, row, col, rows, vocab)
        sums += tl.where(weight >= limit[:, None], weight, 0.0)
    goal = tl.rand(tl.load(seed), row) * tl.sum(sums, axis=1)
    before = tl.zeros((BLOCK_R,), dtype=tl.float32)
    chosen = tl.full((BLOCK_R,), 2147483647, dtype=tl.int32)
    last = tl.zeros((BLOCK_R,), dtype=tl.int32)
    for start in range(0, vocab, BLOCK_V):
        col = start + tl.arange(0, BLOCK_V)
        weight = weighed(logits, temperature, peak, row, col, rows, vocab)
        kept = (weight >= limit[:, None]) & (weight > 0.0)
        weight = tl.where(kept, weight, 0.0)
        total = before[:, None] + tl.cumsum(weight, axis=1)
        reached = tl.where(kept & (total > goal[:, None]), col[None, :], 2147483647)
        chosen = tl.minimum(chosen, tl.min(reached, axis=1))
        last = tl.maximum(last, tl.max(tl.where(kept, col[None, :], 0), axis=1))
        before += tl.sum(weight, axis=1)
    tl.store(token + row, tl.minimum(chosen, last), mask=row < rows)


def top_p_sample(logits, temperature, top_p, seed, token, *, rows, vocab):
    """Write token [rows]."""
    block = min(triton.next_power_of_2(vocab), 4096)
    some = min(4096 // block, 128)
    top_p_kernel[(triton.cdiv(rows, some),)](
        logits, temperature, top_p, seed, token, rows, vocab,
        BLOCK_R=some, BLOCK_V=block, num_warps=8,
    )  # fmt: skip
