"""The largest element of each row: a program walks along a row, or, if rows are few, a part of one.

It keeps the largest elements, and the tile that each was first seen in; of the first tile that
has the row's largest, it then finds the place. A second, tiny kernel joins parts.
Tiles begin at aligned places, so that all loads are wide.
"""

import torch
import triton
import triton.language as tl

TILE = 16384  # bytes
PROGRAMS_AT_ONCE = 264  # 2 on each of 132 multiprocessors
PART = 16384  # bytes
ALIGNED = tl.constexpr(16)  # elements


@triton.jit
def rows_kernel(
    logits, peaks, places, vocab, parts, length, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """Value and column of the largest element of a part: [rows, parts]."""
    program = tl.program_id(0)
    part = program % parts
    begin = (program // parts).to(tl.int64) * vocab
    # Tiles begin at aligned places. What is before the first, and after the last, are the edges.
    body = (begin + ALIGNED - 1) // ALIGNED * ALIGNED
    skipped = (body - begin).to(tl.int32)
    inner = tl.maximum(vocab - skipped, 0) // ALIGNED * ALIGNED
    start = part * length
    left = tl.minimum(inner - start, length)
    tile = logits + body + start
    logits += begin
    low = float("-inf")
    # A vector a line, so that its largest element is found without other threads.
    lane = tl.arange(0, BLOCK // WIDTH)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    value = tl.load(tile + lane, mask=lane < left, other=low)
    edge = tl.arange(0, 2 * ALIGNED)
    is_head = edge < ALIGNED
    edge = tl.where(is_head, edge, skipped + inner + edge - ALIGNED)
    is_edge = (is_head & (edge < skipped)) | ((edge >= skipped + inner) & ~is_head)
    is_edge = is_edge & (edge < vocab)
    few = tl.load(logits + edge, mask=is_edge, other=low).to(tl.float32)
    best = tl.full((BLOCK // WIDTH,), low, dtype=tl.float32)
    where = tl.zeros((BLOCK // WIDTH,), dtype=tl.int32)
    tiles = (left + BLOCK - 1) // BLOCK
    for i in range(tiles):
        further = (i + 1) * BLOCK
        ahead = tl.load(tile + further + lane, mask=lane < left - further, other=low)
        largest = tl.max(value.to(tl.float32), axis=1)
        where = tl.where(largest > best, i, where)
        best = tl.maximum(best, largest)
        value = ahead
    largest = tl.max(best, axis=0)
    # The first of the tiles that have it is looked at again, since it is in the cache.
    first = tl.min(tl.where(best == largest, where, tiles), axis=0) * BLOCK
    largest = tl.maximum(largest, tl.max(few, axis=0))
    known = lane < left - first
    value = tl.load(tile + first + lane, mask=known, other=low).to(tl.float32)
    col = tl.where(known & (value == largest), skipped + start + first + lane, vocab)
    place = tl.min(tl.min(col, axis=1), axis=0)
    place = tl.minimum(place, tl.min(tl.where(is_edge & (few == largest), edge, vocab), axis=0))
    tl.store(peaks + program, largest)
    tl.store(places + program, place)


@triton.jit
def parts_kernel(
    logits, peaks, places, total, vocab, parts, BLOCK: tl.constexpr, ODD: tl.constexpr
):  # fmt: skip
    """Value and column of the largest element of a part: [rows, parts]."""
    program = tl.program_id(0)
    row = program // parts
    begin = row.to(tl.int64) * vocab
    first = begin // ALIGNED * ALIGNED + program % parts * BLOCK
    left = total - first
    lane = tl.arange(0, BLOCK)
    col = (first - begin).to(tl.int32) + lane
    low = float("-inf")
    if ODD:
        # Whole vectors, also of other rows; but not past the end.
        if left >= BLOCK:
            value = tl.load(logits + first + lane)
        else:
            value = tl.load(logits + first + lane, mask=lane < left, other=low)
    else:
        known = lane < left // ALIGNED * ALIGNED
        value = tl.load(logits + first + lane, mask=known, other=low)
    inside = (col >= 0) & (col < vocab)
    value = tl.where(inside, value.to(tl.float32), low)
    largest = tl.max(value, axis=0)
    place = tl.min(tl.where((value == largest) & inside, col, vocab), axis=0)
    tl.store(peaks + program, largest)
    tl.store(places + program, place)


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
    size = logits.element_size()
    total = rows * vocab
    if rows > PROGRAMS_AT_ONCE // 2:
        block = min(max(triton.next_power_of_2(vocab), ALIGNED.value), TILE // size)
        rows_kernel[(rows,)](
            logits, peak, token, vocab, 1, triton.cdiv(vocab, block) * block,
            BLOCK=block, WIDTH=16 // size, num_warps=max(block * size // 1024, 1),
        )  # fmt: skip
        return
    ahead = 0 if vocab % ALIGNED.value == 0 else ALIGNED.value - 1
    # Smaller parts where there are few programs.
    most = PART if total * size > 264 * PART else PART // 4
    block = min(triton.next_power_of_2(vocab + ahead), most // size)
    parts = triton.cdiv(vocab + ahead, block)
    odd = total % ALIGNED.value > 0
    warps = max(block * size // 2048, 1)
    if parts == 1:
        parts_kernel[(rows,)](
            logits, peak, token, total, vocab, 1, BLOCK=block, ODD=odd, num_warps=warps
        )  # fmt: skip
        return
    peaks = torch.empty(rows * parts, dtype=logits.dtype, device=logits.device)
    places = torch.empty(rows * parts, dtype=torch.int32, device=logits.device)
    parts_kernel[(rows * parts,)](
        logits, peaks, places, total, vocab, parts, BLOCK=block, ODD=odd, num_warps=warps
    )
    join_kernel[(rows,)](
        peaks, places, token, peak, vocab, parts, PARTS=triton.next_power_of_2(parts), num_warps=1
    )
