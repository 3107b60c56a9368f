"""Causal attention with capped scores: one program for each tile of queries."""

import triton
import triton.language as tl


@triton.jit
def softcap_kernel(
    q, k, v, y, lse, scale, cap, group, seq, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * BLOCK_M
    query = first + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    place = (head * seq + query)[:, None] * dim + column[None, :]
    inside = (query < seq)[:, None] & (column < dim)[None, :]
    q_tile = tl.load(q + place, mask=inside, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, tl.minimum(first + BLOCK_M, seq), BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        there = (key < seq)[:, None] & (column < dim)[None, :]
        line = (head // group * seq + key)[:, None] * dim + column[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * (scale / cap)
        shrunk = tl.exp(-2.0 * tl.abs(score))
        capped = cap * (1.0 - shrunk) / (1.0 + shrunk)
        capped = tl.where(score < 0.0, -capped, capped)
        square = score * score
        small = cap * score * (1.0 - square * (1.0 / 3.0 - square * (2.0 / 15.0)))
        score = tl.where(square < 0.01, small, capped)
        score = tl.where(key[None, :] <= query[:, None], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        v_tile = tl.load(v + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    tl.store(y + place, result / total[:, None], mask=inside)
    tl.store(lse + head * seq + query, peak + tl.log(total), mask=query < seq)


def attention_softcap(q, k, v, y, lse, *, scale, cap, batch, kv_heads, group, seq, dim):
    """Write capped attention of q [batch, kv_heads * group, seq, dim] into y and lse."""
    rows = 64 if dim <= 128 else 32
    softcap_kernel[(batch * kv_heads * group, triton.cdiv(seq, rows))](
        q, k, v, y, lse, scale, cap, group, seq, dim,
        BLOCK_M=rows, BLOCK_N=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
