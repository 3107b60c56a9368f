"""Normalisation of heads and rotary embedding: one program for each head of each token."""

import triton
import triton.language as tl


@triton.jit
def qk_norm_rope_kernel(x, weight, position, cos, sin, y, eps, heads, half, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    start = (token * heads + head) * 2 * half
    lane = tl.arange(0, BLOCK)
    inside = lane < half
    low = tl.load(x + start + lane, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(x + start + half + lane, mask=inside, other=0.0).to(tl.float32)
    mean = (tl.sum(low * low, axis=0) + tl.sum(high * high, axis=0)) / (2 * half)
    scale = tl.rsqrt(mean + eps)
    low *= scale * tl.load(weight + lane, mask=inside, other=0.0).to(tl.float32)
    high *= scale * tl.load(weight + half + lane, mask=inside, other=0.0).to(tl.float32)
    place = tl.load(position + token).to(tl.int64) * half + lane
    across = tl.load(cos + place, mask=inside, other=0.0)
    along = tl.load(sin + place, mask=inside, other=0.0)
    tl.store(y + start + lane, low * across - high * along, mask=inside)
    tl.store(y + start + half + lane, high * across + low * along, mask=inside)


def qk_norm_rope(x, weight, position, cos, sin, y, *, eps, tokens, heads, half, positions):
    """Normalise and rotate the heads of x [tokens, heads, 2 * half] into y."""
    qk_norm_rope_kernel[(tokens, heads)](
        x, weight, position, cos, sin, y, eps, heads, half,
        BLOCK=triton.next_power_of_2(half), num_warps=1,
    )  # fmt: skip
