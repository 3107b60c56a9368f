"""Rotary positions, and heads before tokens, in one pass."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotate_kernel(
    x, cosine, sine, y, tokens, heads, HALF: tl.constexpr, PAIRS: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    place = token % tokens
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    head, pair = index // PAIRS, index % PAIRS
    inside = (head < heads) & (pair < HALF)
    at = (token * heads + head) * (2 * HALF) + pair
    first = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(x + at + HALF, mask=inside, other=0.0).to(tl.float32)
    turn = place * (2 * HALF) + pair
    cosine1 = tl.load(cosine + turn, mask=inside, other=0.0).to(tl.float32)
    cosine2 = tl.load(cosine + turn + HALF, mask=inside, other=0.0).to(tl.float32)
    sine1 = tl.load(sine + turn, mask=inside, other=0.0).to(tl.float32)
    sine2 = tl.load(sine + turn + HALF, mask=inside, other=0.0).to(tl.float32)
    to = (((token // tokens) * heads + head) * tokens + place) * (2 * HALF) + pair
    tl.store(y + to, first * cosine1 - second * sine1, mask=inside)
    tl.store(y + to + HALF, second * cosine2 + first * sine2, mask=inside)


def neg_cat_mul(x, cosine, sine):
    """Return x [batch, tokens, heads * size], turned: [batch, heads, tokens, size]."""
    x, cosine, sine = x.contiguous(), cosine.contiguous(), sine.contiguous()
    size = cosine.shape[-1]
    batch, tokens, width = x.shape
    heads = width // size
    pairs = triton.next_power_of_2(size // 2)
    block = min(1024, triton.next_power_of_2(heads) * pairs)
    y = torch.empty((batch, heads, tokens, size), dtype=x.dtype, device=x.device)
    grid = (batch * tokens, triton.cdiv(heads * pairs, block))
    # kabuild:tune num_warps = 1, 2, 4, 8
    rotate_kernel[grid](
        x, cosine, sine, y, tokens, heads, HALF=size // 2, PAIRS=pairs, BLOCK=block, num_warps=4
    )
    return y
