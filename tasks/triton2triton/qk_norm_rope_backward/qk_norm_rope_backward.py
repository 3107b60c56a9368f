"""Gradients of normalised, rotated heads: a program a token, then sums for the weight."""

import torch
import triton
import triton.language as tl


@triton.jit
def heads_kernel(
    x, weight, position, cos, sin, dy, dx, partial, eps, heads, half, BLOCK: tl.constexpr
):
    """The gradients of a token's heads, and their share of the weight's: [tokens, 2 * half]."""
    token = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    inside = lane < half
    place = tl.load(position + token).to(tl.int64) * half + lane
    across = tl.load(cos + place, mask=inside, other=0.0)
    along = tl.load(sin + place, mask=inside, other=0.0)
    gain_low = tl.load(weight + lane, mask=inside, other=0.0).to(tl.float32)
    gain_high = tl.load(weight + half + lane, mask=inside, other=0.0).to(tl.float32)
    sum_low = tl.zeros((BLOCK,), dtype=tl.float32)
    sum_high = tl.zeros((BLOCK,), dtype=tl.float32)
    for head in range(heads):
        low_place = (token * heads + head) * 2 * half + lane
        high_place = low_place + half
        low = tl.load(x + low_place, mask=inside, other=0.0).to(tl.float32)
        high = tl.load(x + high_place, mask=inside, other=0.0).to(tl.float32)
        mean = (tl.sum(low * low, axis=0) + tl.sum(high * high, axis=0)) / (2 * half)
        scale = tl.rsqrt(mean + eps)
        low *= scale
        high *= scale
        first = tl.load(dy + low_place, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(dy + high_place, mask=inside, other=0.0).to(tl.float32)
        back_low = first * across + second * along
        back_high = second * across - first * along
        sum_low += back_low * low
        sum_high += back_high * high
        back_low *= gain_low
        back_high *= gain_high
        slope = (tl.sum(back_low * low, axis=0) + tl.sum(back_high * high, axis=0)) / (2 * half)
        tl.store(dx + low_place, scale * (back_low - low * slope), mask=inside)
        tl.store(dx + high_place, scale * (back_high - high * slope), mask=inside)
    tl.store(partial + token * 2 * half + lane, sum_low, mask=inside)
    tl.store(partial + token * 2 * half + half + lane, sum_high, mask=inside)


@triton.jit
def sum_kernel(partial, dweight, rows, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    col = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    total = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(0, rows, BLOCK_R):
        row = (start + tl.arange(0, BLOCK_R)).to(tl.int64)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        total += tl.load(partial + row[:, None] * cols + col[None, :], mask=inside, other=0.0)
    tl.store(dweight + col, tl.sum(total, axis=0), mask=col < cols)


def qk_norm_rope_backward(
    x, weight, position, cos, sin, dy, dx, dweight, *, eps, tokens, heads, half, positions
):
    """Write the gradients of x [tokens, heads, 2 * half] and weight [2 * half]."""
    cols = 2 * half
    partial = torch.empty((tokens, cols), dtype=torch.float32, device=x.device)
    heads_kernel[(tokens,)](
        x, weight, position, cos, sin, dy, dx, partial, eps, heads, half,
        BLOCK=triton.next_power_of_2(half), num_warps=2,
    )  # fmt: skip
    sum_kernel[(triton.cdiv(cols, 32),)](partial, dweight, tokens, cols, BLOCK_R=64, BLOCK_C=32)
