"""Policy-gradient loss: short rows in one pass, long rows in tiles after their tokens were counted.

A short row's tokens stay in registers until its count is known. If long rows are few, they are cut
into parts: each counts the whole row by itself, a byte a token, and a tiny kernel adds their terms.
"""

import torch
import triton
import triton.language as tl

LONGEST_ROW = 4096
ELEMENTS_A_TILE = 1024
COUNTED_AT_ONCE = 16384
ALIGNED = tl.constexpr(16)  # elements
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
    part = program % parts
    begin = row.to(tl.int64) * seq
    # Tiles begin at aligned places. What is before the first, and after the last, are the edges.
    body = (begin + ALIGNED - 1) // ALIGNED * ALIGNED
    skipped = (body - begin).to(tl.int32)
    inner = tl.maximum(seq - skipped, 0) // ALIGNED * ALIGNED
    start = part * length
    left = tl.minimum(inner - start, length)
    lane = tl.arange(0, BLOCK)
    at = body + start
    logp_tile, old_tile, ref_tile, mask_tile = logp + at, old + at, ref + at, mask + at
    changed = dlogp + at
    known = lane < left
    counts = tl.load(mask_tile + lane, mask=known, other=0)
    own = tl.load(logp_tile + lane, mask=known, other=0.0, eviction_policy="evict_first")
    sampled = tl.load(old_tile + lane, mask=known, other=0.0, eviction_policy="evict_first")
    other = tl.load(ref_tile + lane, mask=known, other=0.0, eviction_policy="evict_first")
    gain = tl.load(advantage + row)
    edge = tl.arange(0, 2 * ALIGNED)
    is_head = edge < ALIGNED
    edge = tl.where(is_head, edge, skipped + inner + edge - ALIGNED)
    is_edge = (~is_head | (edge < skipped)) & (edge < seq)
    edges_count = tl.load(mask + begin + edge, mask=is_edge, other=0) > 0
    # The first part has the head, and the last one the tail.
    mine = is_edge & ((is_head & (part == 0)) | (~is_head & (part == parts - 1)))
    edges_own = tl.load(logp + begin + edge, mask=mine, other=0.0)
    edges_sampled = tl.load(old + begin + edge, mask=mine, other=0.0)
    edges_other = tl.load(ref + begin + edge, mask=mine, other=0.0)
    # While these are under way, the whole row's tokens are counted.
    vectors: tl.constexpr = COUNTED // ALIGNED
    place = tl.arange(0, vectors)[:, None] * ALIGNED + tl.arange(0, ALIGNED)[None, :]
    seen = tl.zeros((vectors,), dtype=tl.int32)
    for first in range(0, inner, COUNTED):
        some = tl.load(mask + body + (first + place), mask=place < inner - first, other=0)
        seen += tl.sum((some > 0).to(tl.int32), axis=1)
    count = tl.sum(seen, axis=0) + tl.sum(edges_count.to(tl.int32), axis=0)
    share = 1.0 / tl.maximum(count, 1).to(tl.float32)
    few, steep = terms(edges_own, edges_sampled, edges_other, gain, low, high, beta)
    tl.store(dlogp + begin + edge, tl.where(edges_count, steep * share, 0.0), mask=mine)
    of_edges = tl.sum(tl.where(mine & edges_count, few, 0.0), axis=0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, left, BLOCK):
        further = first + BLOCK
        ahead = lane < left - further
        next_counts = tl.load(mask_tile + (further + lane), mask=ahead, other=0)
        next_own = tl.load(
            logp_tile + (further + lane), mask=ahead, other=0.0, eviction_policy="evict_first"
        )
        next_sampled = tl.load(
            old_tile + (further + lane), mask=ahead, other=0.0, eviction_policy="evict_first"
        )
        next_other = tl.load(
            ref_tile + (further + lane), mask=ahead, other=0.0, eviction_policy="evict_first"
        )
        token, slope = terms(own, sampled, other, gain, low, high, beta)
        slope = tl.where(counts > 0, slope * share, 0.0)
        tl.store(changed + (first + lane), slope, mask=lane < left - first)
        total += tl.where(counts > 0, token, 0.0)
        counts, own, sampled, other = next_counts, next_own, next_sampled, next_other
    tl.store(of_loss + program, (tl.sum(total, axis=0) + of_edges) * share)
    tl.store(used + row, count, mask=part == 0)


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
            ROWS=together, BLOCK=block, num_warps=max(1, together * block // 128),
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
        BLOCK=ELEMENTS_A_TILE, COUNTED=min(triton.next_power_of_2(seq), COUNTED_AT_ONCE),
        num_warps=8,
    )  # fmt: skip
    if parts > 1:
        sum_kernel[(rows,)](of_loss, loss, parts, PARTS=triton.next_power_of_2(parts), num_warps=1)
