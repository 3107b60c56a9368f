"""Nearest entries: one program for 64 points, which walks over the codebook 32 entries a time."""

import triton
import triton.language as tl


@triton.jit
def nearest_kernel(
    x, codebook, nearest, distance, points, entries, dim,
    BLOCK_P: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    point = tl.program_id(0).to(tl.int64) * BLOCK_P + tl.arange(0, BLOCK_P)
    best = tl.full((BLOCK_P,), float("inf"), dtype=tl.float32)
    chosen = tl.zeros((BLOCK_P,), dtype=tl.int32)
    for start in range(0, entries, BLOCK_E):
        entry = start + tl.arange(0, BLOCK_E)
        square = tl.zeros((BLOCK_P, BLOCK_E), dtype=tl.float32)
        for deep in range(0, dim, BLOCK_D):
            column = deep + tl.arange(0, BLOCK_D)
            x_inside = (point < points)[:, None] & (column < dim)[None, :]
            c_inside = (entry < entries)[:, None] & (column < dim)[None, :]
            x_place = point[:, None] * dim + column[None, :]
            c_place = entry[:, None] * dim + column[None, :]
            x_tile = tl.load(x + x_place, mask=x_inside, other=0.0)
            c_tile = tl.load(codebook + c_place, mask=c_inside, other=0.0)
            product = tl.dot(x_tile, tl.trans(c_tile), input_precision="ieee")
            x_wide = x_tile.to(tl.float32)
            c_wide = c_tile.to(tl.float32)
            square += tl.sum(x_wide * x_wide, axis=1)[:, None]
            square += tl.sum(c_wide * c_wide, axis=1)[None, :] - 2.0 * product
        square = tl.where((entry < entries)[None, :], square, float("inf"))
        least = tl.min(square, axis=1)
        place = tl.argmin(square, axis=1).to(tl.int32)
        chosen = tl.where(least < best, start + place, chosen)
        best = tl.minimum(best, least)
    tl.store(nearest + point, chosen, mask=point < points)
    tl.store(distance + point, best, mask=point < points)


def vector_quantise(x, codebook, nearest, distance, *, points, entries, dim):
    """Write the nearest entry of each point of x [points, dim], and its squared distance."""
    nearest_kernel[(triton.cdiv(points, 64),)](
        x, codebook, nearest, distance, points, entries, dim,
        BLOCK_P=64, BLOCK_E=32, BLOCK_D=32, num_stages=2,
    )  # fmt: skip
