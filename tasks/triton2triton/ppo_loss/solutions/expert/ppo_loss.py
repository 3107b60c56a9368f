"""Policy-gradient loss: short rows in one pass, long rows in tiles after their tokens were counted.

A short row's tokens stay in registers until its count is known. If long rows are few, they are cut
into parts: each counts the whole row by itself, a byte a token, and a tiny kernel adds their terms.
"""

import torch
import triton
import triton.language as tl

LONGEST_ROW = 4096
ELEMENTS_A_TILE = 1024
COUNTED_AT_ONCE = 8192
PROGRAMS_WANTED = 396  # 3 on each of 132 multiprocessors


@triton.jit
def terms(own, old, other, gain, low, high, beta):
    """The loss of each token that counts, and its slope."""
    step = own - old
    away = other - own
    ratio = tl.exp(tl.minimum(tl.maximum(step, -20.0), 20.0))
    free = ratio * gain
    held = tl.minimum(tl.maximum(ratio, 1.0 - low), 1.0 + high) * gain
    bounded = tl.minimum(tl.maximum(away, -20.0), 20.0)
    grown = tl.exp(bounded)
    token = beta * (grown - bounded - 1.0) - tl.minimum(free, held)
    slope = tl.where((free <= held) & (tl.abs(step) <= 20.0), -free, 0.0)
    return token, slope + tl.where(tl.abs(away) <= 20.0, beta * (1.0 - grown), 0.0)


@triton.jit
def whole_rows(
    logp, old, ref, mask, advantage, loss, dlogp, used, low, high, beta, rows, seq,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (i < seq)[None, :]
    at = row.to(tl.int64)[:, None] * seq + i[None, :]
    # All loads are under way at once: none waits for the mask.
    counts = tl.load(mask + at, mask=inside, other=0) > 0
    own = tl.load(logp + at, mask=inside, other=0.0, eviction_policy="evict_first")
    sampled = tl.load(old + at, mask=inside, other=0.0, eviction_policy="evict_first")
    other = tl.load(ref + at, mask=inside, other=0.0, eviction_policy="evict_first")
    gain = tl.load(advantage + row, mask=row < rows, other=0.0)
    token, slope = terms(own, sampled, other, gain[:, None], low, high, beta)
    count = tl.sum(counts.to(tl.int32), axis=1)
    share = 1.0 / tl.maximum(count, 1).to(tl.float32)
    tl.store(dlogp + at, tl.where(counts, slope * share[:, None], 0.0), mask=inside)
    total = tl.sum(tl.where(counts, token, 0.0), axis=1)
    tl.store(loss + row, total * share, mask=row < rows)
    tl.store(used + row, count, mask=row < rows)


@triton.jit
def parts_of_rows(
    logp, old, ref, mask, advantage, of_loss, dlogp, used, low, high, beta, seq, parts, length,
    BLOCK: tl.constexpr, COUNTED: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    row = program // parts
    start = program % parts * length
    first = row.to(tl.int64) * seq
    seen = tl.zeros((COUNTED,), dtype=tl.int32)
    for begin in range(0, seq, COUNTED):
        i = begin + tl.arange(0, COUNTED)
        seen += (tl.load(mask + first + i, mask=i < seq, other=0) > 0).to(tl.int32)
    count = tl.sum(seen, axis=0)
    share = 1.0 / tl.maximum(count, 1).to(tl.float32)
    gain = tl.load(advantage + row)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for begin in range(start, tl.minimum(start + length, seq), BLOCK):
        i = begin + tl.arange(0, BLOCK)
        inside = i < seq
        at = first + i
        counts = tl.load(mask + at, mask=inside, other=0) > 0
        own = tl.load(logp + at, mask=inside, other=0.0, eviction_policy="evict_first")
        sampled = tl.load(old + at, mask=inside, other=0.0, eviction_policy="evict_first")
        other = tl.load(ref + at, mask=inside, other=0.0, eviction_policy="evict_first")
        token, slope = terms(own, sampled, other, gain, low, high, beta)
        tl.store(dlogp + at, tl.where(counts, slope * share, 0.0), mask=inside)
        total += tl.where(counts, token, 0.0)
    tl.store(of_loss + program, tl.sum(total, axis=0) * share)
    tl.store(used + row, count, mask=start == 0)


@triton.jit
def sum_kernel(of_loss, loss, parts, PARTS: tl.constexpr):
    row = tl.program_id(0)
    part = tl.arange(0, PARTS)
    value = tl.load(of_loss + row * parts + part, mask=part < parts, other=0.0)
    tl.store(loss + row, tl.sum(value, axis=0))


def ppo_loss(logp, old, ref, mask, advantage, loss, dlogp, used, *, low, high, beta, rows, seq):
    """Write loss [rows], its gradient dlogp [rows, seq], and how many tokens count."""
    if seq <= LONGEST_ROW:
        block = triton.next_power_of_2(seq)
        together = max(1, min(ELEMENTS_A_TILE // block, triton.next_power_of_2(rows)))
        whole_rows[(triton.cdiv(rows, together),)](
            logp, old, ref, mask, advantage, loss, dlogp, used, low, high, beta, rows, seq,
            ROWS=together, BLOCK=block, num_warps=max(1, together * block // 256),
        )  # fmt: skip
        return
    parts = min(triton.cdiv(PROGRAMS_WANTED, rows), triton.cdiv(seq, ELEMENTS_A_TILE))
    # All parts but the last are whole tiles.
    length = triton.cdiv(triton.cdiv(seq, parts), ELEMENTS_A_TILE) * ELEMENTS_A_TILE
    parts = triton.cdiv(seq, length)
    of_loss = loss
    if parts > 1:
        of_loss = torch.empty(rows * parts, dtype=torch.float32, device=logp.device)
    parts_of_rows[(rows * parts,)](
        logp, old, ref, mask, advantage, of_loss, dlogp, used, low, high, beta, seq, parts, length,
        BLOCK=ELEMENTS_A_TILE, COUNTED=COUNTED_AT_ONCE, num_warps=8,
    )  # fmt: skip
    if parts > 1:
        sum_kernel[(rows,)](of_loss, loss, parts, PARTS=triton.next_power_of_2(parts), num_warps=1)
