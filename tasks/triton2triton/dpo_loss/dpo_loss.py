"""Preference loss in three kernels: logarithms of each token, sums of sequences, pairs.

A program of the first has one token, and walks over its logits twice.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def token_kernel(logits, token, mask, likely, vocab, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    line = logits + place * vocab
    peaks = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(line + col, mask=col < vocab, other=float("-inf")).to(tl.float32)
        peaks = tl.maximum(peaks, value)
    peak = tl.max(peaks, axis=0)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(line + col, mask=col < vocab, other=float("-inf")).to(tl.float32)
        sums += tl.exp(value - peak)
    counts = tl.load(mask + place) != 0
    own = tl.load(line + tl.load(token + place), mask=counts, other=0.0).to(tl.float32)
    result = own - peak - tl.log(tl.sum(sums, axis=0))
    tl.store(likely + place, tl.where(counts, result, 0.0))


@triton.jit
def sequence_kernel(likely, logp, seq, BLOCK: tl.constexpr):
    sequence = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, seq, BLOCK):
        step = start + tl.arange(0, BLOCK)
        total += tl.load(likely + sequence * seq + step, mask=step < seq, other=0.0)
    tl.store(logp + sequence, tl.sum(total, axis=0))


@triton.jit
def pair_kernel(logp, known, margin, loss, beta, pairs, BLOCK: tl.constexpr):
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = pair < pairs
    chosen = tl.load(logp + pair, mask=inside, other=0.0)
    chosen -= tl.load(known + pair, mask=inside, other=0.0)
    rejected = tl.load(logp + pairs + pair, mask=inside, other=0.0)
    rejected -= tl.load(known + pairs + pair, mask=inside, other=0.0)
    gain = beta * (chosen - rejected)
    small = tl.exp(-tl.abs(gain))
    rest = tl.where(small < 1e-4, small, tl.log(1.0 + small))
    tl.store(margin + pair, gain, mask=inside)
    tl.store(loss + pair, tl.maximum(-gain, 0.0) + rest, mask=inside)


def dpo_loss(logits, token, mask, known, logp, margin, loss, *, beta, pairs, seq, vocab):
    """Write logp [2 * pairs], margin and loss [pairs]."""
    likely = torch.empty((2 * pairs, seq), dtype=torch.float32, device=logits.device)
    token_kernel[(2 * pairs * seq,)](logits, token, mask, likely, vocab, BLOCK=1024, num_warps=4)
    sequence_kernel[(2 * pairs,)](likely, logp, seq, BLOCK=256, num_warps=4)
    grid = (triton.cdiv(pairs, 64),)
    pair_kernel[grid](logp, known, margin, loss, beta, pairs, BLOCK=64, num_warps=2)
