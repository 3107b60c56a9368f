"""Causal attention: one program for each tile of queries, which walks over the keys before it."""

import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q, k, v, y, scale, group, seq, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * BLOCK_M
    query = first + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    own = head * seq * dim
    shared = head // group * seq * dim

    place = query[:, None] * dim + column[None, :]
    inside = (query < seq)[:, None] & (column < dim)[None, :]
    q_tile = tl.load(q + own + place, mask=inside, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, tl.minimum(first + BLOCK_M, seq), BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        there = (key < seq)[:, None] & (column < dim)[None, :]
        line = shared + key[:, None] * dim + column[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        score = tl.where(key[None, :] <= query[:, None], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        v_tile = tl.load(v + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    tl.store(y + own + place, result / total[:, None], mask=inside)


def attention_prefill(q, k, v, y, *, batch, kv_heads, group, seq, dim):
    """Write causal attention of q [batch, kv_heads * group, seq, dim] into y."""
    rows = 64 if dim <= 128 else 32
    grid = (batch * kv_heads * group, triton.cdiv(seq, rows))
    attention_kernel[grid](
        q, k, v, y, dim**-0.5, group, seq, dim,
        BLOCK_M=rows, BLOCK_N=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
