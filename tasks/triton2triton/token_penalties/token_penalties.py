"""Penalties of logits in two kernels: one counts the tokens of the texts, one changes logits."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(token, prompt, end, every, own, vocab, history, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.load(prompt + row)
    last = tl.load(end + row)
    for start in range(0, last, BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = place < last
        known = tl.load(token + row * history + place, mask=inside, other=0)
        tl.atomic_add(every + row * vocab + known, 1, mask=inside)
        tl.atomic_add(own + row * vocab + known, 1, mask=inside & (place >= first))


@triton.jit
def change_kernel(
    logits, repetition, presence, frequency, every, own, changed, vocab, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    factor = tl.load(repetition + row)
    once = tl.load(presence + row)
    each = tl.load(frequency + row)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < vocab
        place = row * vocab + col
        value = tl.load(logits + place, mask=inside, other=0.0).to(tl.float32)
        seen = tl.load(every + place, mask=inside, other=0)
        count = tl.load(own + place, mask=inside, other=0)
        scaled = tl.where(value > 0.0, value / factor, value * factor)
        value = tl.where(seen > 0, scaled, value)
        value = tl.where(count > 0, value - (once + each * count.to(tl.float32)), value)
        tl.store(changed + place, value, mask=inside)


def token_penalties(
    logits, token, prompt, end, repetition, presence, frequency, changed, *, rows, vocab, history
):
    """Write changed [rows, vocab]."""
    counts = torch.zeros((2, rows, vocab), dtype=torch.int32, device=logits.device)
    every, own = counts[0], counts[1]
    count_kernel[(rows,)](token, prompt, end, every, own, vocab, history, BLOCK=256, num_warps=4)
    change_kernel[(rows,)](
        logits, repetition, presence, frequency, every, own, changed, vocab,
        BLOCK=1024, num_warps=4,
    )  # fmt: skip
