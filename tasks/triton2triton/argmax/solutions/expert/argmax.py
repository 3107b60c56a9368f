"""The largest element of each row: few, long rows are cut into parts for the whole device.

A second, tiny kernel joins the parts. Lanes keep the first of equal elements, and so do parts.
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
ROWS_ENOUGH = 1056  # 8 programs on each of 132 multiprocessors


@triton.jit
def parts_kernel(logits, peaks, places, vocab, parts, length, BLOCK: tl.constexpr):
    """Value and column of the largest element of a part: [rows, parts]."""
    program = tl.program_id(0)
    start = program % parts * length
    end = tl.minimum(start + length, vocab)
    logits += (program // parts).to(tl.int64) * vocab
    lane = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    place = start + lane
    for first in range(start, end, BLOCK):
        col = first + lane
        value = tl.load(
            logits + col, mask=col < end, other=float("-inf"), eviction_policy="evict_first"
        ).to(tl.float32)
        place = tl.where(value > best, col, place)
        best = tl.maximum(best, value)
    largest = tl.max(best, axis=0)
    first_place = tl.min(tl.where(best == largest, place, vocab), axis=0)
    tl.store(peaks + program, largest)
    tl.store(places + program, first_place)


@triton.jit
def join_kernel(peaks, places, token, peak, vocab, parts, PARTS: tl.constexpr):
    row = tl.program_id(0)
    part = tl.arange(0, PARTS)
    best = tl.load(peaks + row * parts + part, mask=part < parts, other=float("-inf"))
    place = tl.load(places + row * parts + part, mask=part < parts, other=vocab)
    largest = tl.max(best.to(tl.float32), axis=0)
    first = tl.min(tl.where(best.to(tl.float32) == largest, place, vocab), axis=0)
    tl.store(token + row, first.to(tl.int64))
    tl.store(peak + row, largest)


def argmax(logits, token, peak, *, rows, vocab):
    """Write column and value of the largest element of each row."""
    block = min(triton.next_power_of_2(vocab), BLOCK)
    warps = max(block // 512, 1)
    parts = min(triton.cdiv(ROWS_ENOUGH, rows), triton.cdiv(vocab, block))
    # Parts begin at multiples of a block, so that their loads stay aligned.
    length = triton.cdiv(triton.cdiv(vocab, parts), block) * block
    parts = triton.cdiv(vocab, length)
    if parts == 1:
        parts_kernel[(rows,)](
            logits, peak, token, vocab, 1, length, BLOCK=block, num_warps=warps
        )  # fmt: skip
        return
    peaks = torch.empty(rows * parts, dtype=logits.dtype, device=logits.device)
    places = torch.empty(rows * parts, dtype=torch.int32, device=logits.device)
    parts_kernel[(rows * parts,)](
        logits, peaks, places, vocab, parts, length, BLOCK=block, num_warps=warps
    )
    join_kernel[(rows,)](
        peaks, places, token, peak, vocab, parts, PARTS=triton.next_power_of_2(parts), num_warps=1
    )
