"""Group normalisation and SiLU in one or two kernels, by how many groups there are.

Many or small groups: one program a group reads it once from memory, and again from the cache. Few,
large groups are cut into parts, each with a mean and squares about it; a second kernel joins these.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_OF_SMALL = 16384
GROUPS_ENOUGH = 264  # 2 on each of 132 multiprocessors
PROGRAMS_WANTED = 1056
MOST_PARTS = 128


@triton.jit
def step_of(x, first, end, BLOCK: tl.constexpr):
    i = first + tl.arange(0, BLOCK)
    return tl.load(x + i, mask=i < end, other=0.0)


@triton.jit
def spread(x, start, end, BLOCK: tl.constexpr, AHEAD: tl.constexpr):
    """Give the mean of x[start:end] and the sum of squares about it, in one walk.

    Sums are about the mean of the first BLOCK elements: E[x^2] - E[x]^2 loses nothing then.
    """
    value = step_of(x, start, end, BLOCK).to(tl.float32)
    if AHEAD:  # what comes next is under way while something is added
        following = step_of(x, start + BLOCK, end, BLOCK)
    middle = tl.sum(value, axis=0) / tl.minimum(BLOCK, end - start)
    sums = tl.where(start + tl.arange(0, BLOCK) < end, value - middle, 0.0)
    squares = sums * sums
    for first in range(start + BLOCK, end, BLOCK):
        if AHEAD:
            current = following
            following = step_of(x, first + BLOCK, end, BLOCK)
        else:
            current = step_of(x, first, end, BLOCK)
        known = first + tl.arange(0, BLOCK) < end
        apart = tl.where(known, current.to(tl.float32) - middle, 0.0)
        sums += apart
        squares += apart * apart
    total = tl.sum(sums, axis=0)
    apart = total / (end - start)
    return middle + apart, tl.maximum(tl.sum(squares, axis=0) - total * apart, 0.0)


@triton.jit
def apply(
    x, weight, bias, y, mean, scale, channel, tile, width, pixels,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Normalise and activate a tile of a group: ROWS of its channels, BLOCK of their pixels."""
    across = tl.cdiv(pixels, BLOCK)
    own = tile // across * ROWS + tl.arange(0, ROWS)
    pixel = tile % across * BLOCK + tl.arange(0, BLOCK)
    inside = (own < width)[:, None] & (pixel < pixels)[None, :]
    at = own[:, None] * pixels + pixel[None, :]
    value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    gain = tl.load(weight + channel + own, mask=own < width, other=0.0).to(tl.float32) * scale
    shift = tl.load(bias + channel + own, mask=own < width, other=0.0).to(tl.float32)
    normal = (value - mean) * gain[:, None] + shift[:, None]
    tl.store(y + at, normal / (1.0 + tl.exp(-normal)), mask=inside)


@triton.jit
def whole_groups(
    x, weight, bias, y, eps, groups, width, pixels, tiles,
    STEP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(0)  # of all images
    size = width * pixels
    x += group.to(tl.int64) * size
    y += group.to(tl.int64) * size
    mean, squares = spread(x, 0, size, STEP, AHEAD=True)
    scale = tl.rsqrt(squares / size + eps)
    channel = group % groups * width
    for back in range(tiles):
        tile = tiles - 1 - back  # what was read last is still near
        apply(x, weight, bias, y, mean, scale, channel, tile, width, pixels, ROWS, BLOCK)


@triton.jit
def parts_of_groups(
    x, means, squares, size, parts, length, STEP: tl.constexpr, AHEAD: tl.constexpr
):
    program = tl.program_id(0)
    start = program % parts * length
    x += (program // parts).to(tl.int64) * size
    mean, square = spread(x, start, tl.minimum(start + length, size), STEP, AHEAD=AHEAD)
    tl.store(means + program, mean)
    tl.store(squares + program, square)


@triton.jit
def tiles_of_groups(
    x, weight, bias, y, means, squares, eps, groups, width, pixels, parts, length, tiles,
    PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    group = program // tiles
    size = width * pixels
    part = tl.arange(0, PARTS)
    known = part < parts
    count = tl.where(known, tl.minimum(length, size - part * length), 0).to(tl.float32)
    means = tl.load(means + group * parts + part, mask=known, other=0.0)
    squares = tl.load(squares + group * parts + part, mask=known, other=0.0)
    middle = tl.sum(means, axis=0) / parts
    mean = middle + tl.sum((means - middle) * count, axis=0) / size
    apart = tl.where(known, means - mean, 0.0)
    scale = tl.rsqrt(tl.sum(squares + apart * apart * count, axis=0) / size + eps)
    x += group.to(tl.int64) * size
    y += group.to(tl.int64) * size
    channel = group % groups * width
    tile = program % tiles
    apply(x, weight, bias, y, mean, scale, channel, tile, width, pixels, ROWS, BLOCK)


def group_norm(x, weight, bias, y, *, eps, batch, groups, width, pixels):
    """Normalise and activate x [batch, groups * width, pixels] into y."""
    size, total = width * pixels, batch * groups
    whole = total >= GROUPS_ENOUGH or size <= ELEMENTS_OF_SMALL
    if not whole:
        most, each = 2048, 512
    elif total >= GROUPS_ENOUGH:
        most, each = 4096, 512
    else:  # a program has a multiprocessor almost for itself
        most, each = 4096, 256
    step = min(triton.next_power_of_2(size), most)
    block = min(triton.next_power_of_2(pixels), most)
    together = min(most // block, triton.next_power_of_2(width))
    tiles = triton.cdiv(width, together) * triton.cdiv(pixels, block)
    warps = max(step // each, 1)
    if whole:
        whole_groups[(total,)](
            x, weight, bias, y, eps, groups, width, pixels, tiles,
            STEP=step, ROWS=together, BLOCK=block, num_warps=warps,
        )  # fmt: skip
        return
    parts = min(triton.cdiv(size, step), triton.cdiv(PROGRAMS_WANTED, total), MOST_PARTS)
    # Parts begin at multiples of 16 elements, so that their loads stay aligned.
    length = triton.cdiv(triton.cdiv(size, parts), 16) * 16
    parts = triton.cdiv(size, length)
    means = torch.empty(total * parts, dtype=torch.float32, device=x.device)
    squares = torch.empty_like(means)
    # Parts of one or two steps gain nothing from a third that is asked for early.
    parts_of_groups[(total * parts,)](
        x, means, squares, size, parts, length, STEP=step, AHEAD=length > 2 * step, num_warps=warps
    )
    tiles_of_groups[(total * tiles,)](
        x, weight, bias, y, means, squares, eps, groups, width, pixels, parts, length, tiles,
        PARTS=triton.next_power_of_2(parts), ROWS=together, BLOCK=block, num_warps=warps,
    )  # fmt: skip
