"""Normalisation of heads and rotary embedding: a program takes several heads, whatever their token.

The heads of a token share the rows of its tables in the cache.
"""

import triton
import triton.language as tl

PAIRS_A_PROGRAM = 1024


@triton.jit
def qk_norm_rope_kernel(
    x, weight, position, cos, sin, y, eps, total, heads, half,
    HEADS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0) * HEADS + tl.arange(0, HEADS)  # of all tokens
    lane = tl.arange(0, BLOCK)
    inside = (head < total)[:, None] & (lane < half)[None, :]
    at = head.to(tl.int64)[:, None] * (2 * half) + lane[None, :]
    low = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    high = tl.load(x + at + half, mask=inside, other=0.0, eviction_policy="evict_first")
    high = high.to(tl.float32)
    where = tl.load(position + head // heads, mask=head < total, other=0).to(tl.int64)
    place = where[:, None] * half + lane[None, :]
    across = tl.load(cos + place, mask=inside, other=0.0)
    along = tl.load(sin + place, mask=inside, other=0.0)
    squares = tl.sum(low * low + high * high, axis=1)
    scale = tl.rsqrt(squares / (2 * half) + eps)[:, None]
    gain = tl.load(weight + lane, mask=lane < half, other=0.0).to(tl.float32)
    low *= scale * gain[None, :]
    gain = tl.load(weight + half + lane, mask=lane < half, other=0.0).to(tl.float32)
    high *= scale * gain[None, :]
    tl.store(y + at, low * across - high * along, mask=inside)
    tl.store(y + at + half, high * across + low * along, mask=inside)


def qk_norm_rope(x, weight, position, cos, sin, y, *, eps, tokens, heads, half, positions):
    """Normalise and rotate the heads of x [tokens, heads, 2 * half] into y."""
    total, block = tokens * heads, triton.next_power_of_2(half)
    together = max(1, min(PAIRS_A_PROGRAM // block, triton.next_power_of_2(total)))
    qk_norm_rope_kernel[(triton.cdiv(total, together),)](
        x, weight, position, cos, sin, y, eps, total, heads, half,
        HEADS=together, BLOCK=block, num_warps=4,
    )  # fmt: skip
