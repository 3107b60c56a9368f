"""Attention to an encoder, which keeps the sums; a second kernel computes the weights again."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q, k, v, length, y, peaks, totals, scale, heads, steps, frames, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """y, and the largest scores and the sums of weights, [batch, heads, steps]."""
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    step = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    count = tl.load(length + head // heads)
    place = (head * steps + step)[:, None] * dim + column[None, :]
    inside = (step < steps)[:, None] & (column < dim)[None, :]
    q_tile = tl.load(q + place, mask=inside, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, count, BLOCK_N):
        frame = start + tl.arange(0, BLOCK_N)
        there = (frame < count)[:, None] & (column < dim)[None, :]
        line = (head * frames + frame)[:, None] * dim + column[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        score = tl.where((frame < count)[None, :], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        v_tile = tl.load(v + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    tl.store(y + place, result / total[:, None], mask=inside)
    tl.store(peaks + head * steps + step, peak, mask=step < steps)
    tl.store(totals + head * steps + step, total, mask=step < steps)


@triton.jit
def align_kernel(
    q, k, length, peaks, totals, align, scale, heads, steps, frames, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The mean weights of a tile of steps and frames."""
    sequence = tl.program_id(0).to(tl.int64)
    step = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    frame = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.arange(0, BLOCK_D)
    count = tl.load(length + sequence)
    inside = (step < steps)[:, None] & (column < dim)[None, :]
    there = (frame < count)[:, None] & (column < dim)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for head in range(sequence * heads, (sequence + 1) * heads):
        place = (head * steps + step)[:, None] * dim + column[None, :]
        line = (head * frames + frame)[:, None] * dim + column[None, :]
        q_tile = tl.load(q + place, mask=inside, other=0.0)
        k_tile = tl.load(k + line, mask=there, other=0.0)
        peak = tl.load(peaks + head * steps + step, mask=step < steps, other=0.0)
        sums = tl.load(totals + head * steps + step, mask=step < steps, other=1.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        total += tl.exp(tl.minimum(score - peak[:, None], 0.0)) / sums[:, None]
    total = tl.where((frame < count)[None, :], total / heads, 0.0)
    place = (sequence * steps + step)[:, None] * frames + frame[None, :]
    tl.store(align + place, total, mask=(step < steps)[:, None] & (frame < frames)[None, :])


def cross_attention_align(q, k, v, length, y, align, *, batch, heads, steps, frames, dim):
    """Write y [batch, heads, steps, dim] and align [batch, steps, frames]."""
    peaks, totals = torch.empty((2, batch, heads, steps), dtype=torch.float32, device=q.device)
    columns, rows = triton.next_power_of_2(dim), triton.cdiv(steps, 32)
    attention_kernel[(batch * heads, rows)](
        q, k, v, length, y, peaks, totals, dim**-0.5, heads, steps, frames, dim,
        BLOCK_M=32, BLOCK_N=32, BLOCK_D=columns, num_stages=1,
    )  # fmt: skip
    align_kernel[(batch, rows, triton.cdiv(frames, 64))](
        q, k, length, peaks, totals, align, dim**-0.5, heads, steps, frames, dim,
        BLOCK_M=32, BLOCK_N=64, BLOCK_D=columns, num_stages=1,
    )  # fmt: skip
