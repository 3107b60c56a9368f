"""Penalties of logits: of short texts in one pass, in which a program copies a row or a part of it.

It counts the text's tokens in its own places of the result, which hold nothing yet. Then it copies
tile by tile, and changes a tile's tokens as soon as it is written: all that they need is in the
cache. Of long texts, a copy, a count, and a change of the tokens that occur follow each other.
"""

import torch
import triton
import triton.language as tl

BLOCK_COPIED = 4096
BLOCK_COUNTED = 512
MOST_CLEARED_AT_ONCE = 1024
SHORT_TEXT = 4096
TILE = 8192  # bytes
ALIGNED = tl.constexpr(16)  # elements
NOWHERE = tl.constexpr(-(2**30))
WIDTH = tl.constexpr(4)  # elements that a thread loads at once, and stores at once


@triton.jit
def row_kernel(
    logits, token, prompt, end, repetition, presence, frequency, changed,
    vocab, history, parts, length,
    BLOCK: tl.constexpr, TEXT: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    part = program % parts
    # Tiles begin at aligned places. What is before the first, and after the last, are the edges.
    begin = row * vocab
    body = (begin + ALIGNED - 1) // ALIGNED * ALIGNED
    skipped = (body - begin).to(tl.int32)
    inner = tl.maximum(vocab - skipped, 0) // ALIGNED * ALIGNED
    start = part * length
    left = tl.minimum(inner - start, length)
    tiles = tl.maximum((left + BLOCK - 1) // BLOCK, 1)
    lane = tl.arange(0, BLOCK // WIDTH)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    source = logits + body + start
    target = changed + body + start
    copied = tl.load(source + lane, mask=lane < left, other=0.0)

    until = tl.load(end + row)
    since = tl.load(prompt + row)
    place = tl.arange(0, TEXT)
    occurs = place < until
    # Nothing is added, but the compiler cannot know: lanes take single tokens, as they must below.
    known = tl.load(token + row * history + tl.minimum(until, 0) + place, mask=occurs, other=0)
    factor = tl.load(repetition + row)
    inverse = 1.0 / factor
    once = tl.load(presence + row)
    each = tl.load(frequency + row)
    low = tl.where(part == 0, 0, skipped + start)
    high = tl.where(part == parts - 1, vocab, skipped + start + length)
    edge = tl.arange(0, 2 * ALIGNED)
    is_head = edge < ALIGNED
    edge = tl.where(is_head, edge, skipped + inner + edge - ALIGNED)
    is_edge = ((is_head & (edge < skipped)) | (edge >= skipped + inner)) & (edge < vocab)
    is_edge = is_edge & (edge >= low) & (edge < high)
    few = tl.load(logits + begin + edge, mask=is_edge, other=0.0)

    mine = occurs & (known >= low) & (known < high)
    count = changed.to(tl.pointer_type(tl.int32)) + begin + known
    tl.store(count, 0, mask=mine)
    tl.debug_barrier()
    tl.atomic_add(count, 1, mask=mine & (place >= since), sem="relaxed")
    tl.debug_barrier()
    times = tl.load(count, mask=mine, other=0, volatile=True)
    less = tl.where(times > 0, once + each * times.to(tl.float32), 0.0)
    tl.debug_barrier()
    tl.store(changed + begin + edge, few.to(tl.float32), mask=is_edge)
    # From where the tile begins. Of two tiles' edges, the first's is left to the second, too.
    at = tl.where(mine, known - (skipped + start), NOWHERE)
    for _ in range(tiles):
        ahead = tl.load(source + BLOCK + lane, mask=lane < left - BLOCK, other=0.0)
        here = (at >= -ALIGNED) & (at < BLOCK + ALIGNED)
        value = tl.load(source + at, mask=here, other=0.0).to(tl.float32)
        tl.store(target + lane, copied.to(tl.float32), mask=lane < left)
        tl.debug_barrier()
        # A token that occurs often is written often, but with the same value.
        value = value * tl.where(value > 0.0, inverse, factor) - less
        tl.store(target + at, value, mask=here)
        source += BLOCK
        target += BLOCK
        copied = ahead
        at -= BLOCK
        left -= BLOCK


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
    if history <= SHORT_TEXT:
        text = triton.next_power_of_2(history)
        block = TILE // logits.element_size()
        block = min(max(triton.next_power_of_2(vocab), ALIGNED.value), block)
        warps = 16 if text > 2048 else 8
        tiles = triton.cdiv(vocab, block)
        # As many programs as are under way at once, if rows are few.
        parts = min(tiles, max(1, 132 * 64 // warps // rows))
        length = triton.cdiv(tiles, parts) * block
        parts = triton.cdiv(vocab, length)
        row_kernel[(rows * parts,)](
            logits, token, prompt, end, repetition, presence, frequency, changed,
            vocab, history, parts, length, BLOCK=block, TEXT=text, num_warps=warps,
        )  # fmt: skip
        return
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
