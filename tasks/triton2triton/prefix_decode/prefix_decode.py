"""Decoding with a shared prompt: one program for a sequence's group, over prompt and own tokens."""

import triton
import triton.language as tl


@triton.jit
def walk(
    query, k, v, begin, end, dim, scale, peak, total, result,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Peak, total and result after the rows begin .. end - 1 of k and v."""
    column = tl.arange(0, BLOCK_D)
    for start in range(begin, end, BLOCK_T):
        row = start + tl.arange(0, BLOCK_T)
        there = (row < end)[:, None] & (column < dim)[None, :]
        place = row[:, None] * dim + column[None, :]
        key = tl.load(k + place, mask=there, other=0.0)
        value = tl.load(v + place, mask=there, other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        score = tl.where((row < end)[None, :], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(value.dtype), value, input_precision="ieee")
        peak = higher
    return peak, total, result


@triton.jit
def decode_kernel(
    q, k_shared, v_shared, k, v, length, y, scale, kv_heads, group, shared, seq, dim,
    BLOCK_G: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    own = sequence * kv_heads + head
    member = tl.arange(0, BLOCK_G)
    column = tl.arange(0, BLOCK_D)
    inside = (member < group)[:, None] & (column < dim)[None, :]
    place = (own * group + member)[:, None] * dim + column[None, :]
    query = tl.load(q + place, mask=inside, other=0.0)
    peak = tl.full((BLOCK_G,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_G,), dtype=tl.float32)
    result = tl.zeros((BLOCK_G, BLOCK_D), dtype=tl.float32)
    begin = head.to(tl.int64) * shared
    peak, total, result = walk(
        query, k_shared, v_shared, begin, begin + shared, dim, scale,
        peak, total, result, BLOCK_T, BLOCK_D,
    )  # fmt: skip
    begin = own * seq
    peak, total, result = walk(
        query, k, v, begin, begin + tl.load(length + sequence), dim, scale,
        peak, total, result, BLOCK_T, BLOCK_D,
    )  # fmt: skip
    tl.store(y + place, result / total[:, None], mask=inside)


def prefix_decode(
    q, k_shared, v_shared, k, v, length, y, *, batch, kv_heads, group, shared, seq, dim
):
    """Write the attention of q [batch, kv_heads * group, dim] over prompt and own tokens into y."""
    decode_kernel[(batch, kv_heads)](
        q, k_shared, v_shared, k, v, length, y, dim**-0.5, kv_heads, group, shared, seq, dim,
        BLOCK_G=16, BLOCK_T=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
