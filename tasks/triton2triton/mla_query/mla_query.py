"""Latent queries: a kernel of tiles of each head's product, and one that rotates the rest."""

import triton
import triton.language as tl


@triton.jit
def product_kernel(
    q, weight, y, tokens, heads, dim, rope, rank,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = token * heads + head
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, dim, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        inside = (token < tokens)[:, None] & (depth < dim)[None, :]
        place = row[:, None] * (dim + rope) + depth[None, :]
        q_tile = tl.load(q + place, mask=inside, other=0.0)
        inside = (depth < dim)[:, None] & (column < rank)[None, :]
        place = (head * dim + depth)[:, None] * rank + column[None, :]
        w_tile = tl.load(weight + place, mask=inside, other=0.0)
        total += tl.dot(q_tile, w_tile, input_precision="ieee")
    place = row[:, None] * (rank + rope) + column[None, :]
    tl.store(y + place, total, mask=(token < tokens)[:, None] & (column < rank)[None, :])


@triton.jit
def rotate_kernel(
    q, cos, sin, y, heads, dim, rope, rank, BLOCK_H: tl.constexpr, BLOCK_P: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, BLOCK_H)
    pair = tl.arange(0, BLOCK_P)
    inside = (head < heads)[:, None] & (pair < rope // 2)[None, :]
    row = token * heads + head
    place = row[:, None] * (dim + rope) + dim + 2 * pair[None, :]
    a = tl.load(q + place, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(q + place + 1, mask=inside, other=0.0).to(tl.float32)
    angle = token * (rope // 2) + pair
    c = tl.load(cos + angle, mask=pair < rope // 2, other=0.0)[None, :]
    s = tl.load(sin + angle, mask=pair < rope // 2, other=0.0)[None, :]
    place = row[:, None] * (rank + rope) + rank + pair[None, :]
    tl.store(y + place, a * c - b * s, mask=inside)
    tl.store(y + place + rope // 2, b * c + a * s, mask=inside)


def mla_query(q, weight, cos, sin, y, *, tokens, heads, dim, rope, rank):
    """Write queries in the space of the cache, and their rotated parts, into y."""
    product_kernel[(heads, triton.cdiv(tokens, 64), triton.cdiv(rank, 64))](
        q, weight, y, tokens, heads, dim, rope, rank,
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2,
    )  # fmt: skip
    rotate_kernel[(tokens,)](
        q, cos, sin, y, heads, dim, rope, rank,
        BLOCK_H=triton.next_power_of_2(heads), BLOCK_P=triton.next_power_of_2(rope // 2),
    )  # fmt: skip
