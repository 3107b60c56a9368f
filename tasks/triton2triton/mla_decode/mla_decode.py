"""Latent attention: one program for sixteen heads of a sequence, which walks over its tokens."""

import triton
import triton.language as tl


@triton.jit
def mla_kernel(
    q, cache, length, y, scale, heads, context, rank, rope,
    BLOCK_H: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    latent = tl.arange(0, BLOCK_R)
    turned = tl.arange(0, BLOCK_P)
    wide = rank + rope

    known = (head < heads)[:, None]
    line = q + (sequence * heads + head)[:, None] * wide
    q_latent = tl.load(line + latent[None, :], mask=known & (latent < rank)[None, :], other=0.0)
    q_turned = tl.load(
        line + rank + turned[None, :], mask=known & (turned < rope)[None, :], other=0.0
    )
    peak = tl.full((BLOCK_H,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_H,), dtype=tl.float32)
    result = tl.zeros((BLOCK_H, BLOCK_R), dtype=tl.float32)
    end = tl.load(length + sequence)
    for start in range(0, end, BLOCK_T):
        token = start + tl.arange(0, BLOCK_T)
        there = (token < end)[:, None]
        row = cache + (sequence * context + token)[:, None] * wide
        content = tl.load(row + latent[None, :], mask=there & (latent < rank)[None, :], other=0.0)
        key = tl.load(
            row + rank + turned[None, :], mask=there & (turned < rope)[None, :], other=0.0
        )
        score = tl.dot(q_latent, tl.trans(content), input_precision="ieee")
        score += tl.dot(q_turned, tl.trans(key), input_precision="ieee")
        score = tl.where((token < end)[None, :], score * scale, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(content.dtype), content, input_precision="ieee")
        peak = higher
    place = y + (sequence * heads + head)[:, None] * rank + latent[None, :]
    tl.store(place, result / total[:, None], mask=known & (latent < rank)[None, :])


def mla_decode(q, cache, length, y, *, scale, batch, heads, context, rank, rope):
    """Write the attention of q [batch, heads, rank + rope] over the cache into y."""
    mla_kernel[(batch, triton.cdiv(heads, 16))](
        q, cache, length, y, scale, heads, context, rank, rope,
        BLOCK_H=16, BLOCK_T=16, BLOCK_R=triton.next_power_of_2(rank),
        BLOCK_P=triton.next_power_of_2(rope), num_stages=1,
    )  # fmt: skip
