"""Batch normalisation: statistics by the whole device in one read, then all elements.

The elements of a channel are cut into parts, each with a mean and squares about it, summed about a
value of the part, so that nothing is lost far from zero; a small kernel joins them. The last kernel
starts with what the first one read last, which is still in the cache. Where rows of pixels are
short, a program takes the same places of some images, whatever their channels: then its loads are
aligned, and it finds each place's channel once.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_TILE = 2048
ELEMENTS_A_WARP = 512
LONGEST_ROW = 1024
SHORT_ROW = 512
PLACES = 1024
IMAGES_AT_ONCE = 4
PROGRAMS_WANTED = 1056  # 8 on each of 132 multiprocessors
PLACES_PROGRAMS = 528  # their statistics are many, so that few parts are better


@triton.jit
def parts_kernel(
    x, means, squares, counts, batch, channels, pixels, parts, each,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Mean, squares about it and number of some channels' elements in `each` tiles."""
    part = tl.program_id(0) % parts
    channel = tl.program_id(0) // parts * ROWS + tl.arange(0, ROWS)
    known = channel < channels
    across = tl.cdiv(pixels, BLOCK)
    begin = part * each
    end = tl.minimum(begin + each, batch * across)
    pixel = begin % across * BLOCK + tl.arange(0, BLOCK)
    inside = known[:, None] & (pixel < pixels)[None, :]
    at = (begin // across * channels + channel).to(tl.int64)[:, None] * pixels + pixel[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    middle = tl.sum(value, axis=1) / tl.minimum(pixels - begin % across * BLOCK, BLOCK)
    sums = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    of_squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    count = 0
    for tile in range(begin, end):
        row = tile // across * channels + channel
        lane = tile % across * BLOCK + tl.arange(0, BLOCK)
        seen = known[:, None] & (lane < pixels)[None, :]
        source = x + row.to(tl.int64)[:, None] * pixels + lane[None, :]
        value = tl.load(source, mask=seen, other=0.0).to(tl.float32)
        apart = tl.where(seen, value - middle[:, None], 0.0)
        sums += apart
        of_squares += apart * apart
        count += tl.minimum(pixels - tile % across * BLOCK, BLOCK)
    total = tl.sum(sums, axis=1)
    apart = total / count
    place = part * channels + channel
    tl.store(means + place, middle + apart, mask=known)
    square = tl.maximum(tl.sum(of_squares, axis=1) - total * apart, 0.0)
    tl.store(squares + place, square, mask=known)
    tl.store(counts + place, tl.zeros((ROWS,), dtype=tl.float32) + count, mask=known)


@triton.jit
def store_statistics(
    average, spread, mean, rstd, average_new, spread_new, channel, known, centre, total,
    eps, momentum, count,
):  # fmt: skip
    tl.store(mean + channel, centre, mask=known)
    tl.store(rstd + channel, tl.rsqrt(total / count + eps), mask=known)
    old = tl.load(average + channel, mask=known, other=0.0)
    tl.store(average_new + channel, (1.0 - momentum) * old + momentum * centre, mask=known)
    old = tl.load(spread + channel, mask=known, other=0.0)
    new = (1.0 - momentum) * old + momentum * (total / (count - 1))
    tl.store(spread_new + channel, new, mask=known)


@triton.jit
def join_kernel(
    means, squares, counts, average, spread, mean, rstd, average_new, spread_new,
    eps, momentum, count, channels, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = channel < channels
    middle = tl.load(means + channel, mask=known, other=0.0)
    moved = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & known[None, :]
        at = part[:, None] * channels + channel[None, :]
        own = tl.load(means + at, mask=inside, other=0.0) - middle[None, :]
        moved += own * tl.load(counts + at, mask=inside, other=0.0)
    centre = middle + tl.sum(moved, axis=0) / count
    total = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & known[None, :]
        at = part[:, None] * channels + channel[None, :]
        own = tl.load(means + at, mask=inside, other=0.0) - centre[None, :]
        total += own * own * tl.load(counts + at, mask=inside, other=0.0)
        total += tl.load(squares + at, mask=inside, other=0.0)
    store_statistics(
        average, spread, mean, rstd, average_new, spread_new, channel, known, centre,
        tl.sum(total, axis=0), eps, momentum, count,
    )  # fmt: skip


@triton.jit
def apply_kernel(
    x, weight, bias, mean, rstd, y, rows, channels, pixels,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    across = tl.cdiv(pixels, BLOCK)
    row = program // across * ROWS + tl.arange(0, ROWS)  # a channel of an image
    known = row < rows
    pixel = program % across * BLOCK + tl.arange(0, BLOCK)
    inside = known[:, None] & (pixel < pixels)[None, :]
    at = row.to(tl.int64)[:, None] * pixels + pixel[None, :]
    value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
    channel = row % channels
    scale = tl.load(rstd + channel, mask=known, other=0.0)
    scale *= tl.load(weight + channel, mask=known, other=0.0)
    centre = tl.load(mean + channel, mask=known, other=0.0)
    shift = tl.load(bias + channel, mask=known, other=0.0)
    result = (value.to(tl.float32) - centre[:, None]) * scale[:, None] + shift[:, None]
    tl.store(y + at, tl.maximum(result, 0.0), mask=inside)


@triton.jit
def places_kernel(
    x, means, squares, batch, places, parts, each, IMAGES: tl.constexpr, BLOCK: tl.constexpr
):
    """Mean of some places over `each` images, and squares about it: [parts, places]."""
    part = tl.program_id(0) % parts
    place = tl.program_id(0) // parts * BLOCK + tl.arange(0, BLOCK)
    inside = place < places
    begin = part * each
    end = tl.minimum(begin + each, batch)
    x += begin.to(tl.int64) * places
    middle = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    of_squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, end - begin, IMAGES):
        image = first + tl.arange(0, IMAGES)
        seen = (image < end - begin)[:, None] & inside[None, :]
        at = image.to(tl.int64)[:, None] * places + place[None, :]
        value = tl.load(x + at, mask=seen, other=0.0).to(tl.float32)
        apart = tl.where(seen, value - middle[None, :], 0.0)
        sums += tl.sum(apart, axis=0)
        of_squares += tl.sum(apart * apart, axis=0)
    apart = sums / (end - begin)
    tl.store(means + part * places + place, middle + apart, mask=inside)
    square = tl.maximum(of_squares - sums * apart, 0.0)
    tl.store(squares + part * places + place, square, mask=inside)


@triton.jit
def places_join_kernel(
    means, squares, average, spread, mean, rstd, average_new, spread_new,
    eps, momentum, batch, channels, pixels, parts, each, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    known = channel < channels
    pixel = tl.arange(0, BLOCK)
    inside = known[:, None] & (pixel < pixels)[None, :]
    start = channel[:, None] * pixels + pixel[None, :]
    count = batch * pixels
    middle = tl.load(means + channel * pixels, mask=known, other=0.0)
    moved = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for part in range(parts):
        images = tl.minimum(each, batch - part * each)
        own = tl.load(means + part * channels * pixels + start, mask=inside, other=0.0)
        moved += tl.where(inside, own - middle[:, None], 0.0) * images
    centre = middle + tl.sum(moved, axis=1) / count
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for part in range(parts):
        images = tl.minimum(each, batch - part * each)
        own = tl.load(means + part * channels * pixels + start, mask=inside, other=0.0)
        own = tl.where(inside, own - centre[:, None], 0.0)
        total += own * own * images
        total += tl.load(squares + part * channels * pixels + start, mask=inside, other=0.0)
    store_statistics(
        average, spread, mean, rstd, average_new, spread_new, channel, known, centre,
        tl.sum(total, axis=1), eps, momentum, count,
    )  # fmt: skip


@triton.jit
def places_apply_kernel(
    x, weight, bias, mean, rstd, y, batch, places, pixels, parts, each, BLOCK: tl.constexpr
):
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    part = program % parts
    place = program // parts * BLOCK + tl.arange(0, BLOCK)
    inside = place < places
    channel = place // pixels
    scale = tl.load(rstd + channel, mask=inside, other=0.0)
    scale *= tl.load(weight + channel, mask=inside, other=0.0)
    centre = tl.load(mean + channel, mask=inside, other=0.0)
    shift = tl.load(bias + channel, mask=inside, other=0.0)
    for image in range(part * each, tl.minimum((part + 1) * each, batch)):
        at = tl.cast(image, tl.int64) * places + place
        value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        result = (value.to(tl.float32) - centre) * scale + shift
        tl.store(y + at, tl.maximum(result, 0.0), mask=inside)


def of_places(
    x, weight, bias, average, spread, y, mean, rstd, average_new, spread_new,
    eps, momentum, batch, channels, pixels,
):  # fmt: skip
    """Normalise where rows of pixels are short."""
    places = channels * pixels
    block = min(triton.next_power_of_2(places), PLACES)
    blocks, warps = triton.cdiv(places, block), max(block // 256, 1)
    each = triton.cdiv(batch, min(batch, triton.cdiv(PLACES_PROGRAMS, blocks)))
    parts = triton.cdiv(batch, each)
    means = torch.empty(parts * places, dtype=torch.float32, device=x.device)
    squares = torch.empty_like(means)
    places_kernel[(blocks * parts,)](
        x, means, squares, batch, places, parts, each,
        IMAGES=min(triton.next_power_of_2(each), IMAGES_AT_ONCE), BLOCK=block, num_warps=warps,
    )  # fmt: skip
    row = triton.next_power_of_2(pixels)
    together = min(max(512 // row, 1), triton.next_power_of_2(channels))
    places_join_kernel[(triton.cdiv(channels, together),)](
        means, squares, average, spread, mean, rstd, average_new, spread_new,
        eps, momentum, batch, channels, pixels, parts, each,
        ROWS=together, BLOCK=row, num_warps=max(together * row // 128, 1),
    )  # fmt: skip
    each = triton.cdiv(batch, min(batch, triton.cdiv(4 * PROGRAMS_WANTED, blocks)))
    parts = triton.cdiv(batch, each)
    places_apply_kernel[(blocks * parts,)](
        x, weight, bias, mean, rstd, y, batch, places, pixels, parts, each,
        BLOCK=block, num_warps=warps,
    )  # fmt: skip


def batch_norm_train(
    x, weight, bias, average, spread, y, mean, rstd, average_new, spread_new,
    *, eps, momentum, batch, channels, pixels,
):  # fmt: skip
    """Normalise x [batch, channels, pixels] into y, and write the statistics of channels."""
    if pixels < SHORT_ROW:
        of_places(
            x, weight, bias, average, spread, y, mean, rstd, average_new, spread_new,
            eps, momentum, batch, channels, pixels,
        )  # fmt: skip
        return
    block = min(triton.next_power_of_2(pixels), LONGEST_ROW)
    together = min(ELEMENTS_A_TILE // block, triton.next_power_of_2(channels))
    across = triton.cdiv(pixels, block)
    blocks, tiles = triton.cdiv(channels, together), batch * across
    each = triton.cdiv(tiles, min(tiles, triton.cdiv(PROGRAMS_WANTED, blocks)))
    parts = triton.cdiv(tiles, each)
    means = torch.empty((parts, channels), dtype=torch.float32, device=x.device)
    squares, counts = torch.empty_like(means), torch.empty_like(means)
    parts_kernel[(blocks * parts,)](
        x, means, squares, counts, batch, channels, pixels, parts, each,
        ROWS=together, BLOCK=block, num_warps=max(together * block // ELEMENTS_A_WARP, 1),
    )  # fmt: skip
    join_kernel[(triton.cdiv(channels, 16),)](
        means, squares, counts, average, spread, mean, rstd, average_new, spread_new,
        eps, momentum, batch * pixels, channels, parts, PARTS=64, BLOCK=16, num_warps=4,
    )  # fmt: skip
    rows = batch * channels
    together = min(ELEMENTS_A_TILE // block, triton.next_power_of_2(rows))
    apply_kernel[(triton.cdiv(rows, together) * across,)](
        x, weight, bias, mean, rstd, y, rows, channels, pixels,
        ROWS=together, BLOCK=block, num_warps=max(together * block // ELEMENTS_A_WARP, 1),
    )  # fmt: skip
