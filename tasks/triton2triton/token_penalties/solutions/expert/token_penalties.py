"""Penalties of logits: a copy at the speed of memory, and then a change of the text's tokens only.

Counts have a place for each logit, but only those of a text's tokens are ever cleared or read: the
copy clears them by the way, a second kernel counts, and a third changes the logits that occur.
"""

import torch
import triton
import triton.language as tl

BLOCK_COPIED = 4096
BLOCK_COUNTED = 512
MOST_CLEARED_AT_ONCE = 1024


@triton.jit
def copy_kernel(
    logits, token, end, count, changed, vocab, history, blocks, share,
    BLOCK: tl.constexpr, CLEARED: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    block = program % blocks
    col = block * BLOCK + tl.arange(0, BLOCK)
    inside = col < vocab
    value = tl.load(
        logits + row * vocab + col, mask=inside, other=0.0, eviction_policy="evict_first"
    )
    last = tl.minimum(tl.load(end + row), (block + 1) * share)
    for start in range(block * share, last, CLEARED):
        place = start + tl.arange(0, CLEARED)
        known = tl.load(token + row * history + place, mask=place < last, other=0)
        tl.store(count + row * vocab + known, 0, mask=place < last)
    tl.store(changed + row * vocab + col, value.to(tl.float32), mask=inside)


@triton.jit
def count_kernel(token, prompt, end, count, vocab, history, blocks, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    place = program % blocks * BLOCK + tl.arange(0, BLOCK)
    own = (place >= tl.load(prompt + row)) & (place < tl.load(end + row))
    known = tl.load(token + row * history + place, mask=own, other=0)
    tl.atomic_add(count + row * vocab + known, 1, mask=own, sem="relaxed")


@triton.jit
def change_kernel(
    logits, token, end, repetition, presence, frequency, count, changed, vocab, history, blocks,
    BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    place = program % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = place < tl.load(end + row)
    factor = tl.load(repetition + row)
    once = tl.load(presence + row)
    each = tl.load(frequency + row)
    # A token that occurs often is changed often, from the same logit to the same result.
    at = row * vocab + tl.load(token + row * history + place, mask=inside, other=0)
    value = tl.load(logits + at, mask=inside, other=0.0).to(tl.float32)
    times = tl.load(count + at, mask=inside, other=0)
    value = tl.where(value > 0.0, value / factor, value * factor)
    value = tl.where(times > 0, value - (once + each * times.to(tl.float32)), value)
    tl.store(changed + at, value, mask=inside)


def token_penalties(
    logits, token, prompt, end, repetition, presence, frequency, changed, *, rows, vocab, history
):
    """Write changed [rows, vocab]."""
    count = torch.empty((rows, vocab), dtype=torch.int32, device=logits.device)
    block = min(triton.next_power_of_2(vocab), BLOCK_COPIED)
    blocks = triton.cdiv(vocab, block)
    share = triton.cdiv(history, blocks)  # of a text, to clear
    copy_kernel[(rows * blocks,)](
        logits, token, end, count, changed, vocab, history, blocks, share,
        BLOCK=block, CLEARED=min(triton.next_power_of_2(share), MOST_CLEARED_AT_ONCE),
        num_warps=max(1, block // 512),
    )  # fmt: skip
    block = min(triton.next_power_of_2(history), BLOCK_COUNTED)
    blocks = triton.cdiv(history, block)
    warps = max(1, block // 128)
    count_kernel[(rows * blocks,)](
        token, prompt, end, count, vocab, history, blocks, BLOCK=block, num_warps=warps
    )
    change_kernel[(rows * blocks,)](
        logits, token, end, repetition, presence, frequency, count, changed,
        vocab, history, blocks, BLOCK=block, num_warps=warps,
    )  # fmt: skip
