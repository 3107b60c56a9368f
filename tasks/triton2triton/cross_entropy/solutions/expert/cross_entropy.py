"""Cross-entropy in one read of the logits: a running maximum rescales a running sum.

With many rows a program takes a row. With few, a row is cut into parts, so that the whole device
reads; a second, tiny kernel joins the parts' maxima and sums.
"""

import torch
import triton
import triton.language as tl

PROGRAMS_WANTED = 512
SHORTEST_PART = 4096
MOST_PARTS = 64
LANES = 512


@triton.jit
def running_sum(logits, start, end, LANES: tl.constexpr, EACH: tl.constexpr, DEEP: tl.constexpr):
    """Give the maximum of logits[start:end] and the sum of exponentials below it.

    Each lane keeps a maximum and a sum of its own, so that nobody waits for others in the loop. A
    lane takes DEEP pieces of EACH neighbouring elements at a time.
    """
    deep = tl.arange(0, DEEP)[:, None, None] * (LANES * EACH)
    own = deep + tl.arange(0, LANES)[None, :, None] * EACH + tl.arange(0, EACH)[None, None, :]
    peak = tl.full((LANES,), float("-inf"), tl.float32)
    total = tl.zeros((LANES,), tl.float32)
    for first in range(start, end, LANES * EACH * DEEP):
        col = first + own
        value = tl.load(
            logits + col, mask=col < end, other=float("-inf"), eviction_policy="evict_first"
        ).to(tl.float32)
        higher = tl.maximum(peak, tl.max(tl.max(value, axis=2), axis=0))
        # What is all minus infinity must not give inf - inf.
        base = tl.where(higher == float("-inf"), 0.0, higher)
        raised = tl.sum(tl.sum(tl.exp(value - base[None, :, None]), axis=2), axis=0)
        total = total * tl.exp(peak - base) + raised
        peak = higher
    highest = tl.max(peak, axis=0)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    return highest, tl.sum(total * tl.exp(peak - base), axis=0)


@triton.jit
def store_loss(logits, target, loss, row, vocab, ignore_index, log_sum):
    chosen = tl.load(target + row)
    kept = chosen != ignore_index
    picked = tl.load(logits + row * vocab + chosen, mask=kept, other=0.0).to(tl.float32)
    tl.store(loss + row, tl.where(kept, log_sum - picked, 0.0))


@triton.jit
def whole_rows(
    logits,
    target,
    loss,
    vocab,
    ignore_index,
    LANES: tl.constexpr,
    EACH: tl.constexpr,
    DEEP: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    peak, total = running_sum(logits + row * vocab, 0, vocab, LANES, EACH, DEEP)
    store_loss(logits, target, loss, row, vocab, ignore_index, peak + tl.log(total))


@triton.jit
def parts_of_rows(
    logits,
    peaks,
    totals,
    vocab,
    parts,
    length,
    LANES: tl.constexpr,
    EACH: tl.constexpr,
    DEEP: tl.constexpr,
):
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    start = program % parts * length
    end = tl.minimum(start + length, vocab)
    peak, total = running_sum(logits + row * vocab, start, end, LANES, EACH, DEEP)
    tl.store(peaks + program, peak)
    tl.store(totals + program, total)


@triton.jit
def join_parts(
    logits, target, loss, peaks, totals, vocab, ignore_index, parts, PARTS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PARTS)
    peak = tl.load(peaks + row * parts + part, mask=part < parts, other=float("-inf"))
    total = tl.load(totals + row * parts + part, mask=part < parts, other=0.0)
    highest = tl.max(peak, axis=0)
    log_sum = highest + tl.log(tl.sum(total * tl.exp(peak - highest), axis=0))
    store_loss(logits, target, loss, row, vocab, ignore_index, log_sum)


def cross_entropy(logits, target, loss, *, ignore_index, rows, vocab):
    """Write the loss of each row of logits [rows, vocab] into loss [rows]."""
    parts = min(triton.cdiv(PROGRAMS_WANTED, rows), triton.cdiv(vocab, SHORTEST_PART), MOST_PARTS)
    # What a lane loads at once; without alignment, neighbouring lanes take neighbouring elements.
    aligned = vocab % 16 == 0
    each, deep = (16 // logits.element_size(), 1) if aligned else (1, 8)
    lanes = min(triton.next_power_of_2(triton.cdiv(vocab, each * deep)), LANES)
    warps = max(lanes // (64 if aligned else 32), 1)
    if parts == 1:
        whole_rows[(rows,)](
            logits, target, loss, vocab, ignore_index,
            LANES=lanes, EACH=each, DEEP=deep, num_warps=warps,
        )  # fmt: skip
        return
    # Parts begin at multiples of 16 elements, so that their loads stay aligned.
    length = triton.cdiv(triton.cdiv(vocab, parts), 16) * 16
    parts = triton.cdiv(vocab, length)
    peaks = torch.empty(rows * parts, dtype=torch.float32, device=logits.device)
    totals = torch.empty_like(peaks)
    parts_of_rows[(rows * parts,)](
        logits, peaks, totals, vocab, parts, length,
        LANES=lanes, EACH=each, DEEP=deep, num_warps=warps,
    )  # fmt: skip
    join_parts[(rows,)](
        logits, target, loss, peaks, totals, vocab, ignore_index, parts,
        PARTS=triton.next_power_of_2(parts), num_warps=1,
    )  # fmt: skip
