"""Packed attention over past and new tokens: one program for 64 queries of a head."""

import triton
import triton.language as tl


@triton.jit
def varlen_kernel(
    q, k, v, begin_q, begin_k, y, scale, kv_heads, group, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    first = tl.load(begin_q + sequence).to(tl.int64)
    last = tl.load(begin_q + sequence + 1)
    place = tl.program_id(2) * BLOCK_M
    if first + place < last:
        begin = tl.load(begin_k + sequence).to(tl.int64)
        count = tl.load(begin_k + sequence + 1) - begin
        past = count - (last - first)
        step = place + tl.arange(0, BLOCK_M)
        column = tl.arange(0, BLOCK_D)
        row = ((first + step) * (kv_heads * group) + head)[:, None] * dim + column[None, :]
        inside = (first + step < last)[:, None] & (column < dim)[None, :]
        q_tile = tl.load(q + row, mask=inside, other=0.0)
        peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
        for start in range(0, tl.minimum(past + place + BLOCK_M, count), BLOCK_N):
            key = start + tl.arange(0, BLOCK_N)
            there = (key < count)[:, None] & (column < dim)[None, :]
            line = ((begin + key) * kv_heads + head // group)[:, None] * dim + column[None, :]
            k_tile = tl.load(k + line, mask=there, other=0.0)
            score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
            score = tl.where(key[None, :] <= past + step[:, None], score, float("-inf"))
            higher = tl.maximum(peak, tl.max(score, axis=1))
            weight = tl.exp(score - higher[:, None])
            shrink = tl.exp(peak - higher)
            v_tile = tl.load(v + line, mask=there, other=0.0)
            total = total * shrink + tl.sum(weight, axis=1)
            result = result * shrink[:, None]
            result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
            peak = higher
        tl.store(y + row, result / total[:, None], mask=inside)


def attention_varlen(
    q, k, v, begin_q, begin_k, y, *, queries, keys, batch, longest, kv_heads, group, dim
):
    """Write causal attention of q [queries, kv_heads * group, dim] into y."""
    rows = 64 if dim <= 128 else 32
    varlen_kernel[(batch, kv_heads * group, triton.cdiv(longest, rows))](
        q, k, v, begin_q, begin_k, y, dim**-0.5, kv_heads, group, dim,
        BLOCK_M=rows, BLOCK_N=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
