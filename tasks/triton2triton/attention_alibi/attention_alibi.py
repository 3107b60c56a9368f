"""Packed attention with biases: one program for 64 queries of a sequence, if it has that many."""

import triton
import triton.language as tl


@triton.jit
def alibi_kernel(
    q, k, v, begin, slope, y, scale, heads, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    first = tl.load(begin + sequence).to(tl.int64)
    last = tl.load(begin + sequence + 1)
    if first + tl.program_id(2) * BLOCK_M < last:
        query = first + tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
        column = tl.arange(0, BLOCK_D)
        rate = tl.load(slope + head)
        place = (query * heads + head)[:, None] * dim + column[None, :]
        inside = (query < last)[:, None] & (column < dim)[None, :]
        q_tile = tl.load(q + place, mask=inside, other=0.0)
        peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
        for start in range(first, last, BLOCK_N):
            key = start + tl.arange(0, BLOCK_N)
            there = (key < last)[:, None] & (column < dim)[None, :]
            line = (key * heads + head)[:, None] * dim + column[None, :]
            k_tile = tl.load(k + line, mask=there, other=0.0)
            score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
            score -= rate * tl.abs(query[:, None] - key[None, :])
            score = tl.where((key < last)[None, :], score, float("-inf"))
            higher = tl.maximum(peak, tl.max(score, axis=1))
            weight = tl.exp(score - higher[:, None])
            shrink = tl.exp(peak - higher)
            v_tile = tl.load(v + line, mask=there, other=0.0)
            total = total * shrink + tl.sum(weight, axis=1)
            result = result * shrink[:, None]
            result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
            peak = higher
        tl.store(y + place, result / total[:, None], mask=inside)


def attention_alibi(q, k, v, begin, slope, y, *, tokens, batch, longest, heads, dim):
    """Write attention within packed sequences of q [tokens, heads, dim] into y."""
    alibi_kernel[(batch, heads, triton.cdiv(longest, 64))](
        q, k, v, begin, slope, y, dim**-0.5, heads, dim,
        BLOCK_M=64, BLOCK_N=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
