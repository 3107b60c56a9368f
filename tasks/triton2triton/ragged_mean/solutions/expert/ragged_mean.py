"""Mean pooling: tiles as tall as sequences usually are, so that a short one is read all at once.

A few sequences are cut into parts, on the device as only it knows their lengths; a second, small
kernel adds the parts in a fixed order.
"""

import torch
import triton
import triton.language as tl

BYTES_ACROSS = 128  # of a row, for each program
TALLEST_TILE = 64
MOST_PIECES = 4
PROGRAMS_ENOUGH = 2112  # 16 on each of 132 multiprocessors
PROGRAMS_WANTED = 8448  # of parts, as those of short sequences have little to do
MOST_PARTS = 64


@triton.jit
def part_of(begin, end, parts, ROWS: tl.constexpr):
    """How many rows each part of a sequence has but the last: a multiple of tiles."""
    return tl.maximum(tl.cdiv(tl.cdiv(end - begin, parts), ROWS), 1) * ROWS


@triton.jit
def sum_rows(
    x, begin, end, col, cols, ROWS: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    HEIGHT: tl.constexpr = ROWS // PIECES
    row = tl.arange(0, HEIGHT)[:, None]
    at = row * cols + col[None, :]
    known = (col < cols)[None, :]
    total = tl.zeros((HEIGHT, BLOCK), dtype=tl.float32)
    for start in range(begin, end, ROWS):
        # All pieces are requested before the first is added.
        for piece in tl.static_range(PIECES):
            first = start + piece * HEIGHT
            inside = (row < end - first) & known
            value = tl.load(
                x + first * cols + at, mask=inside, other=0.0, eviction_policy="evict_first"
            )
            total += value.to(tl.float32)
    return tl.sum(total, axis=0)


@triton.jit
def whole_kernel(
    x, offset, y, cols, strips, ROWS: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    # The strips of a sequence are neighbours, as in memory.
    sequence = (tl.program_id(0) // strips).to(tl.int64)
    col = tl.program_id(0) % strips * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(offset + sequence)
    end = tl.load(offset + sequence + 1)
    total = sum_rows(x, begin, end, col, cols, ROWS, PIECES, BLOCK)
    length = tl.maximum(end - begin, 1).to(tl.float32)
    tl.store(y + sequence * cols + col, total / length, mask=col < cols)


@triton.jit
def parts_kernel(
    x, offset, sums, cols, strips, parts,
    ROWS: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    col = program % strips * BLOCK + tl.arange(0, BLOCK)
    piece = (program // strips).to(tl.int64)
    sequence = piece // parts
    begin = tl.load(offset + sequence)
    end = tl.load(offset + sequence + 1)
    length = part_of(begin, end, parts, ROWS)
    begin += piece % parts * length
    # Parts without rows are left as they are: nobody reads them.
    if begin < end:
        total = sum_rows(x, begin, tl.minimum(begin + length, end), col, cols, ROWS, PIECES, BLOCK)
        tl.store(sums + piece * cols + col, total, mask=col < cols)


@triton.jit
def join_kernel(
    sums, offset, y, cols, strips, parts,
    ROWS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    sequence = (tl.program_id(0) // strips).to(tl.int64)
    col = tl.program_id(0) % strips * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(offset + sequence)
    end = tl.load(offset + sequence + 1)
    used = tl.cdiv(end - begin, part_of(begin, end, parts, ROWS))
    part = tl.arange(0, PARTS)
    inside = (part < used)[:, None] & (col < cols)[None, :]
    at = (sequence * parts + part)[:, None] * cols + col[None, :]
    total = tl.sum(tl.load(sums + at, mask=inside, other=0.0), axis=0)
    length = tl.maximum(end - begin, 1).to(tl.float32)
    tl.store(y + sequence * cols + col, total / length, mask=col < cols)


def ragged_mean(x, offset, y, *, tokens, sequences, cols):
    """Write the mean of each sequence of x [tokens, cols] into y [sequences, cols]."""
    block = min(triton.next_power_of_2(cols), BYTES_ACROSS // x.element_size())
    strips = triton.cdiv(cols, block)
    mean = triton.cdiv(tokens, sequences)
    rows = min(triton.next_power_of_2(mean), TALLEST_TILE)
    pieces = min(MOST_PIECES, rows)
    warps = max(1, min(rows * block // 1024, 8))
    programs = sequences * strips
    if programs >= PROGRAMS_ENOUGH or mean <= rows:
        whole_kernel[(programs,)](
            x, offset, y, cols, strips,
            ROWS=rows, PIECES=pieces, BLOCK=block, num_warps=warps,
        )  # fmt: skip
        return
    # A sequence may be several times as long as the mean, but parts have a tile at least.
    parts = min(triton.cdiv(PROGRAMS_WANTED, programs), 4 * triton.cdiv(mean, rows), MOST_PARTS)
    sums = torch.empty((sequences * parts, cols), dtype=torch.float32, device=x.device)
    parts_kernel[(programs * parts,)](
        x, offset, sums, cols, strips, parts,
        ROWS=rows, PIECES=pieces, BLOCK=block, num_warps=warps,
    )  # fmt: skip
    narrow = min(block, 32)
    strips = triton.cdiv(cols, narrow)
    join_kernel[(sequences * strips,)](
        sums, offset, y, cols, strips, parts,
        ROWS=rows, PARTS=triton.next_power_of_2(parts), BLOCK=narrow, num_warps=2,
    )  # fmt: skip
