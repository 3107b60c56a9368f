"""Gradients of batch normalisation: sums of channels, then all elements.

Large tensors take one kernel, in which a channel is summed and soon after read again from the
cache. Its programs take work in order: the sums of a part of a channel, and the gradients of a part
that was summed some programs earlier. These wait for parts with lower numbers only, which are under
way, whatever else the device does.

Small tensors stay in the cache as a whole, and a channel that does not fit leaves it anyway: these
take a kernel for parts of the sums, one that adds them up and one for all elements, which starts
with what the first one read last. Where rows of pixels are short, programs of these take the same
places of some images, whatever their channels: then loads are aligned, and a program finds each
place's channel once.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_TILE = 2048
LONGEST_ROW = 1024
SHORT_ROW = 512
PROGRAMS_WANTED = 1056  # 8 on each of 132 multiprocessors
PLACES_PROGRAMS = 396  # their sums are many, so that few parts are better
CACHE = 14 * 2**20  # bytes between the two reads of a part
TILES_A_PROGRAM = 4


@triton.jit
def tile_of(batch, channels, pixels, channel, tile, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Where a tile of a channel is, some images and some pixels of them, and what of it exists."""
    across = tl.cdiv(pixels, BLOCK)
    image = tile // across * ROWS + tl.arange(0, ROWS)
    pixel = tile % across * BLOCK + tl.arange(0, BLOCK)
    inside = (image < batch)[:, None] & (pixel < pixels)[None, :]
    at = (image.to(tl.int64) * channels + channel)[:, None] * pixels + pixel[None, :]
    return at, inside


@triton.jit
def lagging_kernel(
    x, passed, weight, mean, rstd, dy, dweight, dbias, dx, products, sums, done,
    batch, count, channels, pixels, parts, tiles, each, lag,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Sums of a part of a channel, and the gradients of one that was summed `lag` programs ago."""
    ticket = tl.atomic_add(done + channels, 1, sem="relaxed")
    if ticket < channels * parts:
        channel = ticket // parts
        begin = ticket % parts * each
        centre = tl.load(mean + channel)
        of_product = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
        of_gradient = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
        for tile in range(begin, tl.minimum(begin + each, tiles)):
            at, inside = tile_of(batch, channels, pixels, channel, tile, ROWS, BLOCK)
            value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
            gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
            gradient = tl.where(tl.load(passed + at, mask=inside, other=0) > 0, gradient, 0.0)
            of_product += gradient * (value - centre)
            of_gradient += gradient
        tl.store(products + ticket, tl.sum(tl.sum(of_product, axis=1), axis=0))
        tl.store(sums + ticket, tl.sum(tl.sum(of_gradient, axis=1), axis=0))
        tl.debug_barrier()
        # The last part of a channel to be done adds all of them up, always in the same order.
        if tl.atomic_add(done + channel, 1, sem="acq_rel") == parts - 1:
            weights = tl.zeros((PARTS,), dtype=tl.float32)
            biases = tl.zeros((PARTS,), dtype=tl.float32)
            for first in range(0, parts, PARTS):
                other = first + tl.arange(0, PARTS)
                known = other < parts
                weights += tl.load(products + channel * parts + other, mask=known, other=0.0)
                biases += tl.load(sums + channel * parts + other, mask=known, other=0.0)
            tl.store(dweight + channel, tl.sum(weights, axis=0) * tl.load(rstd + channel))
            tl.store(dbias + channel, tl.sum(biases, axis=0))
            tl.debug_barrier()
            tl.atomic_add(done + channel, 1, sem="release")
    task = ticket - lag
    if task >= 0:
        channel = task // parts
        begin = task % parts * each
        scale = tl.load(rstd + channel)
        gain = tl.load(weight + channel) * scale
        centre = tl.load(mean + channel)
        while tl.atomic_add(done + channel, 0, sem="acquire") <= parts:
            pass
        average = tl.load(dbias + channel) / count
        slope = tl.load(dweight + channel) / count * scale
        for tile in range(begin, tl.minimum(begin + each, tiles)):
            at, inside = tile_of(batch, channels, pixels, channel, tile, ROWS, BLOCK)
            value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
            upper = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
            kept = tl.load(passed + at, mask=inside, other=0, eviction_policy="evict_first") > 0
            gradient = tl.where(kept, upper.to(tl.float32), 0.0) - average
            gradient -= (value.to(tl.float32) - centre) * slope
            tl.store(dx + at, gain * gradient, mask=inside, eviction_policy="evict_first")


@triton.jit
def parts_kernel(
    x, passed, mean, rstd, dy, products, sums, batch, channels, pixels, parts, each,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums of g * n and g of some channels over `each` tiles: [parts, channels]."""
    part = tl.program_id(0) % parts
    channel = tl.program_id(0) // parts * ROWS + tl.arange(0, ROWS)
    known = channel < channels
    centre = tl.load(mean + channel, mask=known, other=0.0)[:, None]
    scale = tl.load(rstd + channel, mask=known, other=0.0)
    of_product = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    of_gradient = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    across = tl.cdiv(pixels, BLOCK)
    for tile in range(part * each, tl.minimum((part + 1) * each, batch * across)):
        row = tile // across * channels + channel
        pixel = tile % across * BLOCK + tl.arange(0, BLOCK)
        inside = known[:, None] & (pixel < pixels)[None, :]
        at = row.to(tl.int64)[:, None] * pixels + pixel[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.where(tl.load(passed + at, mask=inside, other=0) > 0, gradient, 0.0)
        of_product += gradient * (value - centre)
        of_gradient += gradient
    tl.store(products + part * channels + channel, tl.sum(of_product, axis=1) * scale, mask=known)
    tl.store(sums + part * channels + channel, tl.sum(of_gradient, axis=1), mask=known)


@triton.jit
def sum_kernel(
    products, sums, dweight, dbias, parts, channels, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    weights = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    biases = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & (channel < channels)[None, :]
        at = part[:, None] * channels + channel[None, :]
        weights += tl.load(products + at, mask=inside, other=0.0)
        biases += tl.load(sums + at, mask=inside, other=0.0)
    tl.store(dweight + channel, tl.sum(weights, axis=0), mask=channel < channels)
    tl.store(dbias + channel, tl.sum(biases, axis=0), mask=channel < channels)


@triton.jit
def input_kernel(
    x, passed, weight, mean, rstd, dy, dweight, dbias, dx, rows, count, channels, pixels,
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
    upper = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
    kept = tl.load(passed + at, mask=inside, other=0, eviction_policy="evict_first") > 0
    channel = row % channels
    scale = tl.load(rstd + channel, mask=known, other=0.0)
    gain = tl.load(weight + channel, mask=known, other=0.0) * scale
    average = tl.load(dbias + channel, mask=known, other=0.0) / count
    slope = tl.load(dweight + channel, mask=known, other=0.0) / count * scale
    centre = tl.load(mean + channel, mask=known, other=0.0)
    gradient = tl.where(kept, upper.to(tl.float32), 0.0) - average[:, None]
    gradient -= (value.to(tl.float32) - centre[:, None]) * slope[:, None]
    tl.store(dx + at, gain[:, None] * gradient, mask=inside)


@triton.jit
def places_kernel(
    x, passed, mean, dy, products, sums, batch, places, pixels, parts, each, BLOCK: tl.constexpr
):
    """Sums of g * (x - mean) and g of some places over `each` images: [parts, places]."""
    part = tl.program_id(0) % parts
    place = tl.program_id(0) // parts * BLOCK + tl.arange(0, BLOCK)
    inside = place < places
    centre = tl.load(mean + place // pixels, mask=inside, other=0.0)
    of_product = tl.zeros((BLOCK,), dtype=tl.float32)
    of_gradient = tl.zeros((BLOCK,), dtype=tl.float32)
    for image in range(part * each, tl.minimum((part + 1) * each, batch)):
        at = tl.cast(image, tl.int64) * places + place
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.where(tl.load(passed + at, mask=inside, other=0) > 0, gradient, 0.0)
        of_product += gradient * (value - centre)
        of_gradient += gradient
    tl.store(products + part * places + place, of_product, mask=inside)
    tl.store(sums + part * places + place, of_gradient, mask=inside)


@triton.jit
def places_sum_kernel(
    products, sums, rstd, dweight, dbias, parts, channels, pixels,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    known = channel < channels
    pixel = tl.arange(0, BLOCK)
    inside = known[:, None] & (pixel < pixels)[None, :]
    weights = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    biases = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for part in range(parts):
        at = (part * channels + channel)[:, None] * pixels + pixel[None, :]
        weights += tl.load(products + at, mask=inside, other=0.0)
        biases += tl.load(sums + at, mask=inside, other=0.0)
    scale = tl.load(rstd + channel, mask=known, other=0.0)
    tl.store(dweight + channel, tl.sum(weights, axis=1) * scale, mask=known)
    tl.store(dbias + channel, tl.sum(biases, axis=1), mask=known)


@triton.jit
def places_input_kernel(
    x, passed, weight, mean, rstd, dy, dweight, dbias, dx, batch, count, places, pixels, parts,
    each, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    part = program % parts
    place = program // parts * BLOCK + tl.arange(0, BLOCK)
    inside = place < places
    channel = place // pixels
    scale = tl.load(rstd + channel, mask=inside, other=0.0)
    gain = tl.load(weight + channel, mask=inside, other=0.0) * scale
    average = tl.load(dbias + channel, mask=inside, other=0.0) / count
    slope = tl.load(dweight + channel, mask=inside, other=0.0) / count * scale
    centre = tl.load(mean + channel, mask=inside, other=0.0)
    for image in range(part * each, tl.minimum((part + 1) * each, batch)):
        at = tl.cast(image, tl.int64) * places + place
        value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        upper = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
        kept = tl.load(passed + at, mask=inside, other=0, eviction_policy="evict_first") > 0
        gradient = tl.where(kept, upper.to(tl.float32), 0.0) - average
        gradient -= (value.to(tl.float32) - centre) * slope
        tl.store(dx + at, gain * gradient, mask=inside)


def of_places(x, passed, weight, mean, rstd, dy, dx, dweight, dbias, batch, channels, pixels):
    """Write the gradients where rows of pixels are short."""
    places = channels * pixels
    block = min(triton.next_power_of_2(places), ELEMENTS_A_TILE)
    blocks, warps = triton.cdiv(places, block), max(block // 256, 1)
    each = triton.cdiv(batch, min(batch, triton.cdiv(PLACES_PROGRAMS, blocks)))
    parts = triton.cdiv(batch, each)
    products = torch.empty(parts * places, dtype=torch.float32, device=x.device)
    sums = torch.empty_like(products)
    places_kernel[(blocks * parts,)](
        x, passed, mean, dy, products, sums, batch, places, pixels, parts, each,
        BLOCK=block, num_warps=warps,
    )  # fmt: skip
    row = triton.next_power_of_2(pixels)
    together = min(max(512 // row, 1), triton.next_power_of_2(channels))
    places_sum_kernel[(triton.cdiv(channels, together),)](
        products, sums, rstd, dweight, dbias, parts, channels, pixels,
        ROWS=together, BLOCK=row, num_warps=max(together * row // 128, 1),
    )  # fmt: skip
    each = triton.cdiv(batch, min(batch, triton.cdiv(2 * PROGRAMS_WANTED, blocks)))
    parts = triton.cdiv(batch, each)
    places_input_kernel[(blocks * parts,)](
        x, passed, weight, mean, rstd, dy, dweight, dbias, dx, batch, batch * pixels, places,
        pixels, parts, each, BLOCK=block, num_warps=warps,
    )  # fmt: skip


def in_three_kernels(
    x, passed, weight, mean, rstd, dy, dx, dweight, dbias, batch, channels, pixels
):
    """Write the gradients of a small tensor, or of channels that do not fit into the cache."""
    block = min(triton.next_power_of_2(pixels), LONGEST_ROW)
    together = min(ELEMENTS_A_TILE // block, triton.next_power_of_2(channels))
    across = triton.cdiv(pixels, block)
    blocks, tiles = triton.cdiv(channels, together), batch * across
    each = triton.cdiv(tiles, min(tiles, triton.cdiv(PROGRAMS_WANTED, blocks)))
    parts = triton.cdiv(tiles, each)
    products = torch.empty((parts, channels), dtype=torch.float32, device=x.device)
    sums = torch.empty_like(products)
    parts_kernel[(blocks * parts,)](
        x, passed, mean, rstd, dy, products, sums, batch, channels, pixels, parts, each,
        ROWS=together, BLOCK=block, num_warps=max(together * block // 256, 1),
    )  # fmt: skip
    sum_kernel[(triton.cdiv(channels, 16),)](
        products, sums, dweight, dbias, parts, channels, PARTS=64, BLOCK=16, num_warps=4
    )
    rows = batch * channels
    together = min(ELEMENTS_A_TILE // block, triton.next_power_of_2(rows))
    input_kernel[(triton.cdiv(rows, together) * across,)](
        x, passed, weight, mean, rstd, dy, dweight, dbias, dx, rows, batch * pixels, channels,
        pixels, ROWS=together, BLOCK=block, num_warps=max(together * block // 256, 1),
    )  # fmt: skip


def in_one_kernel(x, passed, weight, mean, rstd, dy, dx, dweight, dbias, batch, channels, pixels):
    """Write the gradients of channel after channel."""
    # The width that wastes least, of those whose rows are long enough to read.
    block = min((2048, 1024, 512, 256, 128), key=lambda width: triton.cdiv(pixels, width) * width)
    together = min(ELEMENTS_A_TILE // block, triton.next_power_of_2(batch))
    tiles = triton.cdiv(batch, together) * triton.cdiv(pixels, block)
    total = channels * tiles
    each = min(max(total // PROGRAMS_WANTED, 1), TILES_A_PROGRAM)
    parts = triton.cdiv(tiles, each)
    products = torch.empty(channels * parts, dtype=torch.float32, device=x.device)
    sums = torch.empty_like(products)
    done = torch.zeros(channels + 1, dtype=torch.int32, device=x.device)
    # At least a channel: a program must not wait for one that comes later.
    size = together * block * each * (2 * x.element_size() + 1)
    lag = min(max(parts, CACHE // size), channels * parts)
    lagging_kernel[(channels * parts + lag,)](
        x, passed, weight, mean, rstd, dy, dweight, dbias, dx, products, sums, done,
        batch, batch * pixels, channels, pixels, parts, tiles, each, lag,
        ROWS=together, BLOCK=block, PARTS=256, num_warps=max(together * block // 256, 1),
    )  # fmt: skip


def batch_norm_backward(
    x, passed, weight, mean, rstd, dy, dx, dweight, dbias, *, batch, channels, pixels
):
    """Write the gradients of x [batch, channels, pixels], weight and bias [channels]."""
    channel = batch * pixels * (2 * x.element_size() + 1)  # bytes that are read of it
    if pixels < SHORT_ROW:
        write = of_places
    elif channel <= CACHE < channels * channel:
        write = in_one_kernel
    else:
        write = in_three_kernels
    write(x, passed, weight, mean, rstd, dy, dx, dweight, dbias, batch, channels, pixels)
