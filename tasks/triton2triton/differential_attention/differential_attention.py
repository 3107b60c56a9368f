"""Differential attention: plain attention for each map, then a kernel that joins the two."""

import torch
import triton
import triton.language as tl


@triton.jit
def map_kernel(
    q, k, v, out, scale, seq, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    """out [batch, 2 * heads, seq, 2 * dim], float32: what one map gives."""
    head = tl.program_id(0).to(tl.int64)  # of all maps
    first = tl.program_id(1) * BLOCK_M
    query = first + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    wide = tl.arange(0, BLOCK_V)
    place = (head * seq + query)[:, None] * dim + column[None, :]
    inside = (query < seq)[:, None] & (column < dim)[None, :]
    q_tile = tl.load(q + place, mask=inside, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, BLOCK_V), dtype=tl.float32)
    for start in range(0, tl.minimum(first + BLOCK_M, seq), BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        line = (head * seq + key)[:, None] * dim + column[None, :]
        there = (key < seq)[:, None] & (column < dim)[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        score = tl.where(key[None, :] <= query[:, None], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        line = (head // 2 * seq + key)[:, None] * (2 * dim) + wide[None, :]
        there = (key < seq)[:, None] & (wide < 2 * dim)[None, :]
        v_tile = tl.load(v + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    place = (head * seq + query)[:, None] * (2 * dim) + wide[None, :]
    inside = (query < seq)[:, None] & (wide < 2 * dim)[None, :]
    tl.store(out + place, result / total[:, None], mask=inside)


@triton.jit
def join_kernel(
    out, lam, weight, y, kept, eps, heads, seq, dim,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    """The difference of two maps, normalised and weighted, for a tile of queries."""
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    query = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_V)
    inside = (query < seq)[:, None] & (column < 2 * dim)[None, :]
    place = query[:, None] * (2 * dim) + column[None, :]
    one = tl.load(out + 2 * head * seq * (2 * dim) + place, mask=inside, other=0.0)
    other = tl.load(out + (2 * head + 1) * seq * (2 * dim) + place, mask=inside, other=0.0)
    apart = one - tl.load(lam + head % heads) * other
    inverse = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=1) / (2 * dim) + eps)
    gain = kept * tl.load(weight + column, mask=column < 2 * dim, other=0.0)
    result = apart * inverse[:, None] * gain[None, :]
    tl.store(y + head * seq * (2 * dim) + place, result, mask=inside)


def differential_attention(q, k, v, lam, weight, y, *, kept, eps, batch, heads, seq, dim):
    """Write the normalised difference of both maps' results into y [batch, heads, seq, 2 * dim]."""
    columns, rows = triton.next_power_of_2(dim), 32
    out = torch.empty((batch, 2 * heads, seq, 2 * dim), dtype=torch.float32, device=q.device)
    map_kernel[(batch * 2 * heads, triton.cdiv(seq, rows))](
        q, k, v, out, dim**-0.5, seq, dim,
        BLOCK_M=rows, BLOCK_N=32, BLOCK_D=columns, BLOCK_V=2 * columns, num_stages=1,
    )  # fmt: skip
    join_kernel[(batch * heads, triton.cdiv(seq, 16))](
        out, lam, weight, y, kept, eps, heads, seq, dim, BLOCK_M=16, BLOCK_V=2 * columns
    )
