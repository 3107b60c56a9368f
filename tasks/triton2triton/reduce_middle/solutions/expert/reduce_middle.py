"""Sums along a middle axis by the whole device: the axis is cut into parts where columns are few.

A second, small kernel adds the parts in a fixed order. A thread has several loads on their way, and
adds up what they bring before it touches its sums.
"""

import torch
import triton
import triton.language as tl

COLUMNS = 128
SUMS_A_PROGRAM = 1024
DEEP = 4
PROGRAMS_ENOUGH = 396  # 3 on each of 132 multiprocessors
PROGRAMS_WANTED = 1056


@triton.jit
def parts_kernel(
    x, total, squares, outer, size, inner, parts, each,
    DEEP: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums of `each` steps of some columns: [parts, outer, inner]."""
    program = tl.program_id(0)
    blocks = tl.cdiv(inner, BLOCK)
    part = program // blocks % parts
    own = program // blocks // parts
    col = program % blocks * BLOCK + tl.arange(0, BLOCK)
    own_steps = tl.arange(0, STEPS)[:, None] + tl.arange(0, DEEP)[None, :] * STEPS
    sums = tl.zeros((STEPS, BLOCK), dtype=tl.float32)
    sums_of_squares = tl.zeros((STEPS, BLOCK), dtype=tl.float32)
    x += own.to(tl.int64) * size * inner
    end = tl.minimum((part + 1) * each, size)
    for start in range(part * each, end, DEEP * STEPS):
        step = start + own_steps
        inside = (step < end)[:, :, None] & (col < inner)[None, None, :]
        at = step.to(tl.int64)[:, :, None] * inner + col[None, None, :]
        value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        value = value.to(tl.float32)
        sums += tl.sum(value, axis=1)
        sums_of_squares += tl.sum(value * value, axis=1)
    at = (tl.cast(part, tl.int64) * outer + own) * inner + col
    tl.store(total + at, tl.sum(sums, axis=0), mask=col < inner)
    tl.store(squares + at, tl.sum(sums_of_squares, axis=0), mask=col < inner)


@triton.jit
def sum_kernel(
    of_total, of_squares, total, squares, parts, places, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    sums_of_squares = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & (place < places)[None, :]
        at = part[:, None] * places + place[None, :]
        sums += tl.load(of_total + at, mask=inside, other=0.0)
        sums_of_squares += tl.load(of_squares + at, mask=inside, other=0.0)
    tl.store(total + place, tl.sum(sums, axis=0), mask=place < places)
    tl.store(squares + place, tl.sum(sums_of_squares, axis=0), mask=place < places)


def reduce_middle(x, total, squares, *, outer, size, inner):
    """Write total and squares [outer, inner]."""
    block = min(triton.next_power_of_2(inner), COLUMNS)
    steps = SUMS_A_PROGRAM // block
    programs = outer * triton.cdiv(inner, block)
    parts = 1
    if programs < PROGRAMS_ENOUGH:
        parts = min(triton.cdiv(PROGRAMS_WANTED, programs), triton.cdiv(size, DEEP * steps))
    # Parts begin at multiples of 16 steps, so that their loads stay aligned.
    each = triton.cdiv(triton.cdiv(size, parts), 16) * 16
    parts = triton.cdiv(size, each)
    of_total, of_squares = total, squares
    if parts > 1:
        of_total = torch.empty((parts, outer, inner), dtype=torch.float32, device=x.device)
        of_squares = torch.empty_like(of_total)
    parts_kernel[(programs * parts,)](
        x, of_total, of_squares, outer, size, inner, parts, each,
        DEEP=DEEP, STEPS=steps, BLOCK=block, num_warps=4,
    )  # fmt: skip
    if parts > 1:
        places = outer * inner
        sum_kernel[(triton.cdiv(places, 32),)](
            of_total, of_squares, total, squares, parts, places, PARTS=64, BLOCK=32, num_warps=8
        )
