"""A step of the wave equation: one program for 4 x 128 points of a layer, 25 loads a point."""

import triton
import triton.language as tl


@triton.jit
def wave_kernel(
    now, before, speed, after, depth, height, width,
    near: tl.constexpr, second: tl.constexpr, third: tl.constexpr, far: tl.constexpr,
    BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr,
):  # fmt: skip
    z = tl.program_id(2)
    y = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)[:, None]
    x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)[None, :]
    inside = (y < height) & (x < width)
    layer = height * width
    place = z.to(tl.int64) * layer + y * width + x
    own = tl.load(now + place, mask=inside, other=0.0)
    laplacian = own * (-205.0 / 24.0)
    for away in tl.static_range(1, 5):
        total = tl.load(now + place - away, mask=inside & (x >= away), other=0.0)
        total += tl.load(now + place + away, mask=inside & (x + away < width), other=0.0)
        total += tl.load(now + place - away * width, mask=inside & (y >= away), other=0.0)
        behind = inside & (y + away < height)
        total += tl.load(now + place + away * width, mask=behind, other=0.0)
        total += tl.load(now + place - away * layer, mask=inside & (z >= away), other=0.0)
        total += tl.load(now + place + away * layer, mask=inside & (z + away < depth), other=0.0)
        tap = near if away == 1 else second if away == 2 else third if away == 3 else far
        laplacian += tap * total
    past = tl.load(before + place, mask=inside, other=0.0)
    rate = tl.load(speed + place, mask=inside, other=0.0)
    tl.store(after + place, 2.0 * own - past + rate * laplacian, mask=inside)


def wave_3d(now, before, speed, after, *, depth, height, width):
    """Write after [depth, height, width]."""
    grid = (triton.cdiv(width, 128), triton.cdiv(height, 4), depth)
    wave_kernel[grid](
        now, before, speed, after, depth, height, width,
        8 / 5, -1 / 5, 8 / 315, -1 / 560, BLOCK_Y=4, BLOCK_X=128, num_warps=4,
    )  # fmt: skip
