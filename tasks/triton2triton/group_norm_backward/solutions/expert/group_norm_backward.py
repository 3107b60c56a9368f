"""Gradients of group normalisation: sums of rows of pixels, and the result of all groups from them.

The second kernel starts with what the first one read last, which is still in the cache.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_TILE = 2048
ELEMENTS_A_PART = 4096
PROGRAMS_WANTED = 2112  # 16 on each of 132 multiprocessors


@triton.jit
def rows_kernel(
    x, mean, rstd, dy, products, gradients, rows, width, pixels, parts, length,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums of dy and dy * n over a part of some rows of pixels: [rows, parts]."""
    row = tl.program_id(0) // parts * ROWS + tl.arange(0, ROWS)  # a channel of an image
    part = tl.program_id(0) % parts
    known = row < rows
    centre = tl.load(mean + row // width, mask=known, other=0.0)[:, None]
    scale = tl.load(rstd + row // width, mask=known, other=0.0)
    of_product = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    of_gradient = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    end = tl.minimum((part + 1) * length, pixels)
    for start in range(part * length, end, BLOCK):
        pixel = start + tl.arange(0, BLOCK)
        inside = known[:, None] & (pixel < end)[None, :]
        at = row.to(tl.int64)[:, None] * pixels + pixel[None, :]
        gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        of_product += gradient * (value - centre)
        of_gradient += gradient
    at = row * parts + part
    tl.store(products + at, tl.sum(of_product, axis=1) * scale, mask=known)
    tl.store(gradients + at, tl.sum(of_gradient, axis=1), mask=known)


@triton.jit
def input_kernel(
    x, weight, mean, rstd, dy, products, gradients, dx, groups, width, pixels, parts, tiles,
    WIDTH: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx of a tile of a group: some of its channels, and some of their pixels."""
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    group = program // tiles  # of all images
    tile = program % tiles
    across = tl.cdiv(pixels, BLOCK)
    own = tile // across * ROWS + tl.arange(0, ROWS)
    pixel = tile % across * BLOCK + tl.arange(0, BLOCK)
    inside = (own < width)[:, None] & (pixel < pixels)[None, :]
    at = (group * width + own).to(tl.int64)[:, None] * pixels + pixel[None, :]
    upper = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    first = group % groups * width
    gain = tl.load(weight + first + own, mask=own < width, other=0.0).to(tl.float32)[:, None]

    channel = tl.arange(0, WIDTH)
    part = tl.arange(0, PARTS)
    seen = (channel < width)[:, None] & (part < parts)[None, :]
    place = (group * width + channel)[:, None] * parts + part[None, :]
    factor = tl.load(weight + first + channel, mask=channel < width, other=0.0).to(tl.float32)
    plain = tl.load(gradients + place, mask=seen, other=0.0) * factor[:, None]
    along = tl.load(products + place, mask=seen, other=0.0) * factor[:, None]
    each = 1.0 / (width * pixels)
    average = tl.sum(tl.sum(plain, axis=1), axis=0) * each
    slope = tl.sum(tl.sum(along, axis=1), axis=0) * each

    centre = tl.load(mean + group)
    scale = tl.load(rstd + group)
    normal = (value - centre) * scale
    tl.store(dx + at, scale * (upper * gain - average - normal * slope), mask=inside)


@triton.jit
def sum_kernel(
    products, gradients, dweight, dbias, batch, channels, parts,
    PARTS: tl.constexpr, DEEP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dweight and dbias of some channels, over all images and parts."""
    channel = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    part = tl.arange(0, PARTS)
    weights = tl.zeros((DEEP, WIDE, PARTS), dtype=tl.float32)
    biases = tl.zeros((DEEP, WIDE, PARTS), dtype=tl.float32)
    for first in range(0, batch, DEEP):
        image = first + tl.arange(0, DEEP)
        row = image[:, None] * channels + channel[None, :]
        known = (image < batch)[:, None] & (channel < channels)[None, :]
        inside = known[:, :, None] & (part < parts)[None, None, :]
        at = row[:, :, None] * parts + part[None, None, :]
        weights += tl.load(products + at, mask=inside, other=0.0)
        biases += tl.load(gradients + at, mask=inside, other=0.0)
    weights = tl.sum(tl.sum(weights, axis=2), axis=0)
    biases = tl.sum(tl.sum(biases, axis=2), axis=0)
    tl.store(dweight + channel, weights, mask=channel < channels)
    tl.store(dbias + channel, biases, mask=channel < channels)


def group_norm_backward(
    x, weight, mean, rstd, dy, dx, dweight, dbias, *, batch, groups, width, pixels
):
    """Write dx [batch, groups * width, pixels], and dweight and dbias [groups * width]."""
    channels = groups * width
    rows = batch * channels
    block = min(triton.next_power_of_2(pixels), ELEMENTS_A_TILE)
    together = max(1, min(ELEMENTS_A_TILE // block, triton.next_power_of_2(rows)))
    length = ELEMENTS_A_PART
    while length < pixels and rows * triton.cdiv(pixels, 2 * length) >= PROGRAMS_WANTED:
        length *= 2
    parts = triton.cdiv(pixels, length)
    products = torch.empty(rows * parts, dtype=torch.float32, device=x.device)
    gradients = torch.empty_like(products)
    rows_kernel[(triton.cdiv(rows, together) * parts,)](
        x, mean, rstd, dy, products, gradients, rows, width, pixels, parts, length,
        ROWS=together, BLOCK=block, num_warps=max(together * block // 512, 1),
    )  # fmt: skip
    padded = triton.next_power_of_2(parts)
    sum_kernel[(triton.cdiv(channels, 16),)](
        products, gradients, dweight, dbias, batch, channels, parts,
        PARTS=padded, DEEP=max(64 // padded, 1), WIDE=16, num_warps=4,
    )  # fmt: skip
    together = min(ELEMENTS_A_TILE // block, triton.next_power_of_2(width))
    tiles = triton.cdiv(width, together) * triton.cdiv(pixels, block)
    input_kernel[(batch * groups * tiles,)](
        x, weight, mean, rstd, dy, products, gradients, dx, groups, width, pixels, parts, tiles,
        WIDTH=triton.next_power_of_2(width), PARTS=padded, ROWS=together, BLOCK=block,
        num_warps=max(together * block // 512, 1),
    )  # fmt: skip
