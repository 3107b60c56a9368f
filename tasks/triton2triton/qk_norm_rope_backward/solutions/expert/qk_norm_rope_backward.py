"""Gradients of normalised, rotated heads in one pass over x and dy.

As many programs as the device runs at once walk over the heads, several at a time, whatever their
token; they ask early for the next tokens' positions. Each adds up its part of the weight's
gradient, and a small kernel adds the parts.
"""

import torch
import triton
import triton.language as tl

PAIRS_A_PROGRAM = 1024
WARPS_AT_ONCE = 3168  # 24 on each of 132 multiprocessors


@triton.jit
def heads_kernel(
    x, weight, position, cos, sin, dy, dx, partial, eps, total, heads, half,
    HEADS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    gain_low = tl.load(weight + lane, mask=lane < half, other=0.0).to(tl.float32)[None, :]
    gain_high = tl.load(weight + half + lane, mask=lane < half, other=0.0).to(tl.float32)[None, :]
    sum_low = tl.zeros((HEADS, BLOCK), dtype=tl.float32)
    sum_high = tl.zeros((HEADS, BLOCK), dtype=tl.float32)
    head = program * HEADS + tl.arange(0, HEADS)
    next_where = tl.load(position + head // heads, mask=head < total, other=0)
    for start in range(program * HEADS, total, tl.num_programs(0) * HEADS):
        head = start + tl.arange(0, HEADS)  # of all tokens
        inside = (head < total)[:, None] & (lane < half)[None, :]
        at = head.to(tl.int64)[:, None] * (2 * half) + lane[None, :]
        low = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        high = tl.load(x + at + half, mask=inside, other=0.0, eviction_policy="evict_first")
        first = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
        second = tl.load(dy + at + half, mask=inside, other=0.0, eviction_policy="evict_first")
        where = next_where
        later = head + tl.num_programs(0) * HEADS
        next_where = tl.load(position + later // heads, mask=later < total, other=0)
        place = where[:, None] * half + lane[None, :]  # below 2^24
        across = tl.load(cos + place, mask=inside, other=0.0)
        along = tl.load(sin + place, mask=inside, other=0.0)
        low = low.to(tl.float32)
        high = high.to(tl.float32)
        first = first.to(tl.float32)
        second = second.to(tl.float32)
        squares = tl.sum(low * low + high * high, axis=1)
        scale = tl.rsqrt(squares / (2 * half) + eps)[:, None]
        low *= scale
        high *= scale
        back_low = first * across + second * along
        back_high = second * across - first * along
        sum_low += back_low * low
        sum_high += back_high * high
        back_low *= gain_low
        back_high *= gain_high
        slope = (tl.sum(back_low * low + back_high * high, axis=1) / (2 * half))[:, None]
        tl.store(dx + at, scale * (back_low - low * slope), mask=inside)
        tl.store(dx + at + half, scale * (back_high - high * slope), mask=inside)
    place = program * 2 * half + lane
    tl.store(partial + place, tl.sum(sum_low, axis=0), mask=lane < half)
    tl.store(partial + place + half, tl.sum(sum_high, axis=0), mask=lane < half)


@triton.jit
def sum_kernel(partial, dweight, parts, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & (col < cols)[None, :]
        total += tl.load(partial + part[:, None] * cols + col[None, :], mask=inside, other=0.0)
    tl.store(dweight + col, tl.sum(total, axis=0), mask=col < cols)


def qk_norm_rope_backward(
    x, weight, position, cos, sin, dy, dx, dweight, *, eps, tokens, heads, half, positions
):
    """Write the gradients of x [tokens, heads, 2 * half] and weight [2 * half]."""
    total, block, warps = tokens * heads, triton.next_power_of_2(half), 4
    together = max(1, min(PAIRS_A_PROGRAM // block, triton.next_power_of_2(total)))
    parts = min(triton.cdiv(total, together), WARPS_AT_ONCE // warps)
    partial = torch.empty((parts, 2 * half), dtype=torch.float32, device=x.device)
    heads_kernel[(parts,)](
        x, weight, position, cos, sin, dy, dx, partial, eps, total, heads, half,
        HEADS=together, BLOCK=block, num_warps=warps,
    )  # fmt: skip
    sum_kernel[(triton.cdiv(2 * half, 8),)](
        partial, dweight, parts, 2 * half, PARTS=1024, BLOCK=8, num_warps=8
    )
