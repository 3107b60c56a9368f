"""Deformable attention: one program for 16 queries of a head, which reads corner after corner."""

import triton
import triton.language as tl


@triton.jit
def deformable_kernel(
    value, size, begin, place, weight, y, tokens, queries, heads, dim, levels, points,
    BLOCK_Q: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    query = tl.program_id(2) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    column = tl.arange(0, BLOCK_D)
    known = query < queries
    own = (sequence * queries + query) * heads + head
    total = tl.zeros((BLOCK_Q, BLOCK_D), dtype=tl.float32)
    for level in range(levels):
        height = tl.load(size + 2 * level)
        width = tl.load(size + 2 * level + 1)
        first = sequence * tokens + tl.load(begin + level)
        for point in range(points):
            given = (own * levels + level) * points + point
            factor = tl.load(weight + given, mask=known, other=0.0)
            across = tl.load(place + 2 * given, mask=known, other=0.0) * width - 0.5
            down = tl.load(place + 2 * given + 1, mask=known, other=0.0) * height - 0.5
            left = tl.floor(across)
            top = tl.floor(down)
            for corner in tl.static_range(4):
                c = left + corner % 2
                r = top + corner // 2
                share = factor * (1.0 - tl.abs(across - c)) * (1.0 - tl.abs(down - r))
                there = known & (c >= 0) & (c < width) & (r >= 0) & (r < height)
                pixel = tl.where(there, r, 0.0).to(tl.int32) * width
                pixel += tl.where(there, c, 0.0).to(tl.int32)
                line = ((first + pixel) * heads + head)[:, None] * dim + column[None, :]
                inside = there[:, None] & (column < dim)[None, :]
                found = tl.load(value + line, mask=inside, other=0.0).to(tl.float32)
                total += share[:, None] * found
    inside = known[:, None] & (column < dim)[None, :]
    tl.store(y + own[:, None] * dim + column[None, :], total, mask=inside)


def deformable_attention(
    value, size, begin, place, weight, y,
    *, batch, tokens, queries, heads, dim, levels, points,
):  # fmt: skip
    """Write the weighted values at all points into y [batch, queries, heads, dim]."""
    deformable_kernel[(batch, heads, triton.cdiv(queries, 16))](
        value, size, begin, place, weight, y, tokens, queries, heads, dim, levels, points,
        BLOCK_Q=16, BLOCK_D=triton.next_power_of_2(dim), num_warps=2,
    )  # fmt: skip
