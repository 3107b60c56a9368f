"""Attention with biases from a table: one program for 64 queries of a head."""

import triton
import triton.language as tl


@triton.jit
def biased_kernel(
    q, k, v, bucket, table, length, y, heads, seq, dim, kinds,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    query = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    count = tl.load(length + head // heads)
    place = (head * seq + query)[:, None] * dim + column[None, :]
    inside = (query < count)[:, None] & (column < dim)[None, :]
    q_tile = tl.load(q + place, mask=inside, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, count, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        there = (key < count)[:, None] & (column < dim)[None, :]
        line = (head * seq + key)[:, None] * dim + column[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee")
        apart = key[None, :] - query[:, None]
        known = (query < count)[:, None] & (key < count)[None, :]
        row = tl.load(bucket + tl.abs(apart), mask=known, other=0)
        row += tl.where(apart > 0, kinds, 0)
        score += tl.load(table + row * heads + head % heads, mask=known, other=0.0)
        score = tl.where((key < count)[None, :], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        v_tile = tl.load(v + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    result = tl.where((query < count)[:, None], result / total[:, None], 0.0)
    tl.store(y + place, result, mask=(query < seq)[:, None] & (column < dim)[None, :])


def attention_t5_bias(q, k, v, bucket, table, length, y, *, batch, heads, seq, dim, kinds):
    """Write attention within sequences of q [batch, heads, seq, dim] into y."""
    biased_kernel[(batch * heads, triton.cdiv(seq, 64))](
        q, k, v, bucket, table, length, y, heads, seq, dim, kinds,
        BLOCK_M=64, BLOCK_N=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
