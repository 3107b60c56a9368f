"""Preference loss in one read of the logits that count: others' rows are never touched.

A running maximum rescales a running sum. With few tokens, a row is cut into parts, so that the
whole device reads; a small kernel, one program a pair, joins parts, tokens and both answers.
"""

import torch
import triton
import triton.language as tl

PROGRAMS_WANTED = 2112  # 16 on each of 132 multiprocessors, of which many have nothing to do
SHORTEST_PART = 8192
MOST_PARTS = 64
MOST_LANES = 256


@triton.jit
def part_kernel(
    logits, token, mask, short, vocab, parts, length,
    LANES: tl.constexpr, EACH: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """Write ln(sum of exponentials) of a part of a row, less the token's logit."""
    program = tl.program_id(0)
    place = (program // parts).to(tl.int64)
    if tl.load(mask + place) == 0:
        return
    start = program % parts * length
    end = tl.minimum(start + length, vocab)
    line = logits + place * vocab
    chosen = tl.load(line + tl.load(token + place)).to(tl.float32)
    # A lane takes DEEP packs of EACH neighbours at a time, with a maximum and a sum of its own.
    pack = tl.arange(0, DEEP)[:, None, None] * LANES + tl.arange(0, LANES)[None, :, None]
    own = pack * EACH + tl.arange(0, EACH)[None, None, :]
    peak = tl.full((LANES,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((LANES,), dtype=tl.float32)
    for first in range(start, end, LANES * EACH * DEEP):
        col = first + own
        value = tl.load(
            line + col, mask=col < end, other=float("-inf"), eviction_policy="evict_first"
        ).to(tl.float32)
        higher = tl.maximum(peak, tl.max(tl.max(value, axis=2), axis=0))
        base = tl.where(higher == float("-inf"), 0.0, higher)  # inf - inf is not a number
        raised = tl.sum(tl.sum(tl.exp(value - base[None, :, None]), axis=2), axis=0)
        total = total * tl.exp(peak - base) + raised
        peak = higher
    highest = tl.max(peak, axis=0)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    whole = tl.sum(total * tl.exp(peak - base), axis=0)
    # The difference comes first: it is small even where logits are large.
    tl.store(short + program, (base - chosen) + tl.log(whole))


@triton.jit
def answer(short, mask, sequence, seq, parts, TOKENS: tl.constexpr, PARTS: tl.constexpr):
    """The sum of the logarithms of one answer's probabilities."""
    part = tl.arange(0, PARTS)[None, :]
    total = tl.zeros((TOKENS,), dtype=tl.float32)
    for start in range(0, seq, TOKENS):
        step = start + tl.arange(0, TOKENS)
        place = sequence * seq + step
        counts = tl.load(mask + place, mask=step < seq, other=0) != 0
        inside = counts[:, None] & (part < parts)
        value = tl.load(short + place[:, None] * parts + part, mask=inside, other=float("-inf"))
        highest = tl.max(value, axis=1)
        base = tl.where(highest == float("-inf"), 0.0, highest)
        whole = tl.sum(tl.exp(value - base[:, None]), axis=1)
        total -= tl.where(counts, base + tl.log(tl.where(counts, whole, 1.0)), 0.0)
    return tl.sum(total, axis=0)


@triton.jit
def pair_kernel(
    short, mask, known, logp, margin, loss, beta, pairs, seq, parts,
    TOKENS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    chosen = answer(short, mask, pair, seq, parts, TOKENS, PARTS)
    rejected = answer(short, mask, pairs + pair, seq, parts, TOKENS, PARTS)
    tl.store(logp + pair, chosen)
    tl.store(logp + pairs + pair, rejected)
    chosen -= tl.load(known + pair)
    rejected -= tl.load(known + pairs + pair)
    gain = beta * (chosen - rejected)
    small = tl.exp(-tl.abs(gain))
    # 1 + small loses the digits of what is much smaller than 1.
    rest = tl.where(small < 1e-4, small, tl.log(1.0 + small))
    tl.store(margin + pair, gain)
    tl.store(loss + pair, tl.maximum(-gain, 0.0) + rest)


def dpo_loss(logits, token, mask, known, logp, margin, loss, *, beta, pairs, seq, vocab):
    """Write logp [2 * pairs], margin and loss [pairs]."""
    rows = 2 * pairs * seq
    parts = min(triton.cdiv(PROGRAMS_WANTED, rows), triton.cdiv(vocab, SHORTEST_PART), MOST_PARTS)
    # Parts begin at multiples of 16 elements, so that their loads stay aligned.
    length = triton.cdiv(triton.cdiv(vocab, parts), 16) * 16
    parts = triton.cdiv(vocab, length)
    # Without alignment, neighbouring lanes take neighbouring elements.
    each, deep = (16 // logits.element_size(), 2) if vocab % 16 == 0 else (1, 8)
    lanes = min(triton.next_power_of_2(triton.cdiv(vocab, each * deep)), MOST_LANES)
    short = torch.empty(rows * parts, dtype=torch.float32, device=logits.device)
    part_kernel[(rows * parts,)](
        logits, token, mask, short, vocab, parts, length,
        LANES=lanes, EACH=each, DEEP=deep, num_warps=max(1, lanes // 32),
    )  # fmt: skip
    part_lanes = triton.next_power_of_2(parts)
    pair_kernel[(pairs,)](
        short, mask, known, logp, margin, loss, beta, pairs, seq, parts,
        TOKENS=max(1, min(1024, triton.next_power_of_2(seq), 2048 // part_lanes)),
        PARTS=part_lanes, num_warps=4,
    )  # fmt: skip
