"""A step of the wave equation by programs that walk through the layers, nine of them in registers.

So only neighbours within a layer are loaded more than once: 17 loads a point, which the caches
serve. A thread has one point of a layer: more need so many addresses that few threads fit, and
those would wait for memory. Each step asks for what the next one needs from there.
"""

import triton
import triton.language as tl

TILE_Y = 8
TILE_X = 32
LONGEST_WALK = 64
SHORTEST_WALK = 16
PROGRAMS_WANTED = 1056  # 8 on each of 132 multiprocessors


@triton.jit
def wave_kernel(
    now, before, speed, after, depth, height, width, walk,
    centre: tl.constexpr, near: tl.constexpr, second: tl.constexpr, third: tl.constexpr,
    far: tl.constexpr, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr,
):  # fmt: skip
    x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)[None, :]
    y = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)[:, None]
    begin = tl.program_id(2) * walk
    end = tl.minimum(begin + walk, depth)
    inside = (y < height) & (x < width)
    layer = height * width  # at most 2^22: places within a layer fit 32 bits
    at = y * width + x
    here = begin.to(tl.int64) * layer
    # The layers 4 before to 4 behind.
    a = tl.load(now + here - 4 * layer + at, mask=inside & (begin >= 4), other=0.0)
    b = tl.load(now + here - 3 * layer + at, mask=inside & (begin >= 3), other=0.0)
    c = tl.load(now + here - 2 * layer + at, mask=inside & (begin >= 2), other=0.0)
    d = tl.load(now + here - layer + at, mask=inside & (begin >= 1), other=0.0)
    own = tl.load(now + here + at, mask=inside, other=0.0)
    e = tl.load(now + here + layer + at, mask=inside & (begin + 1 < depth), other=0.0)
    f = tl.load(now + here + 2 * layer + at, mask=inside & (begin + 2 < depth), other=0.0)
    g = tl.load(now + here + 3 * layer + at, mask=inside & (begin + 3 < depth), other=0.0)
    h = tl.load(now + here + 4 * layer + at, mask=inside & (begin + 4 < depth), other=0.0)
    past = tl.load(before + here + at, mask=inside, other=0.0)
    rate = tl.load(speed + here + at, mask=inside, other=0.0)
    for z in range(begin, end):
        line = now + here + at
        following = inside & (z + 1 < end)
        next_h = tl.load(line + 5 * layer, mask=following & (z + 5 < depth), other=0.0)
        next_past = tl.load(before + here + layer + at, mask=following, other=0.0)
        next_rate = tl.load(speed + here + layer + at, mask=following, other=0.0)
        laplacian = own * centre + near * (d + e) + second * (c + f) + third * (b + g)
        laplacian += far * (a + h)
        for away in tl.static_range(1, 5):
            total = tl.load(line - away, mask=inside & (x >= away), other=0.0)
            total += tl.load(line + away, mask=inside & (x + away < width), other=0.0)
            total += tl.load(line - away * width, mask=inside & (y >= away), other=0.0)
            total += tl.load(line + away * width, mask=inside & (y + away < height), other=0.0)
            tap = near if away == 1 else second if away == 2 else third if away == 3 else far
            laplacian += tap * total
        tl.store(after + here + at, 2.0 * own - past + rate * laplacian, mask=inside)
        a, b, c, d, own, e, f, g, h = b, c, d, own, e, f, g, h, next_h
        past, rate = next_past, next_rate
        here += layer


def wave_3d(now, before, speed, after, *, depth, height, width):
    """Write after [depth, height, width]."""
    across, down = triton.cdiv(width, TILE_X), triton.cdiv(height, TILE_Y)
    # Each walk loads 8 layers of its neighbours, so walks are long where tiles are many.
    walk = depth * across * down // PROGRAMS_WANTED
    walk = max(SHORTEST_WALK, min(walk, LONGEST_WALK))
    # Walks of one length, or nearly.
    walk = triton.cdiv(depth, triton.cdiv(depth, walk))
    wave_kernel[(across, down, triton.cdiv(depth, walk))](
        now, before, speed, after, depth, height, width, walk,
        -205 / 24, 8 / 5, -1 / 5, 8 / 315, -1 / 560,
        BLOCK_Y=TILE_Y, BLOCK_X=TILE_X, num_warps=8,
    )  # fmt: skip
