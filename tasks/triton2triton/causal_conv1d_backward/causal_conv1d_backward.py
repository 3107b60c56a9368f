"""Gradients of a causal convolution with SiLU, in three kernels with a float32 buffer between.

The first has the gradients of the sums, the second those of the inputs, and the third, with one
program for some channels and a tap, those of taps and bias. A line is one channel of one sequence.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_gradient_kernel(
    x, weight, bias, dy, g, lines, channels, seq, width,
    BLOCK_L: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    line = tl.program_id(0).to(tl.int64) * BLOCK_L + tl.arange(0, BLOCK_L)
    channel = line % channels
    time = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    inside = (line < lines)[:, None] & (time < seq)[None, :]
    z = tl.zeros((BLOCK_L, BLOCK_T), dtype=tl.float32)
    z += tl.load(bias + channel).to(tl.float32)[:, None]
    for tap in range(width):
        source = time - (width - 1) + tap
        place = line[:, None] * seq + source[None, :]
        value = tl.load(x + place, mask=inside & (source >= 0)[None, :], other=0.0)
        factor = tl.load(weight + channel * width + tap).to(tl.float32)
        z += factor[:, None] * value.to(tl.float32)
    share = 1.0 / (1.0 + tl.exp(-z))
    place = line[:, None] * seq + time[None, :]
    gradient = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(g + place, gradient * share * (1.0 + z * (1.0 - share)), mask=inside)


@triton.jit
def input_gradient_kernel(
    weight, g, dx, lines, channels, seq, width, BLOCK_L: tl.constexpr, BLOCK_T: tl.constexpr
):
    line = tl.program_id(0).to(tl.int64) * BLOCK_L + tl.arange(0, BLOCK_L)
    channel = line % channels
    time = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    total = tl.zeros((BLOCK_L, BLOCK_T), dtype=tl.float32)
    for tap in range(width):
        source = time + (width - 1) - tap
        inside = (line < lines)[:, None] & (source < seq)[None, :]
        gradient = tl.load(g + line[:, None] * seq + source[None, :], mask=inside, other=0.0)
        total += tl.load(weight + channel * width + tap).to(tl.float32)[:, None] * gradient
    inside = (line < lines)[:, None] & (time < seq)[None, :]
    tl.store(dx + line[:, None] * seq + time[None, :], total, mask=inside)


@triton.jit
def tap_gradient_kernel(
    x, g, dweight, dbias, batch, channels, seq, width,
    BLOCK_L: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0).to(tl.int64) * BLOCK_L + tl.arange(0, BLOCK_L)
    tap = tl.program_id(1)
    of_tap = tl.zeros((BLOCK_L, BLOCK_T), dtype=tl.float32)
    of_bias = tl.zeros((BLOCK_L, BLOCK_T), dtype=tl.float32)
    for sequence in range(batch):
        line = sequence * channels + channel
        for start in range(0, seq, BLOCK_T):
            time = start + tl.arange(0, BLOCK_T)
            source = time - (width - 1) + tap
            inside = (channel < channels)[:, None] & (time < seq)[None, :]
            gradient = tl.load(g + line[:, None] * seq + time[None, :], mask=inside, other=0.0)
            known = inside & (source >= 0)[None, :]
            value = tl.load(x + line[:, None] * seq + source[None, :], mask=known, other=0.0)
            of_tap += gradient * value.to(tl.float32)
            of_bias += gradient
    inside = channel < channels
    tl.store(dweight + channel * width + tap, tl.sum(of_tap, axis=1), mask=inside)
    tl.store(dbias + channel, tl.sum(of_bias, axis=1), mask=inside & (tap == 0))


def causal_conv1d_backward(x, weight, bias, dy, dx, dweight, dbias, *, batch, channels, seq, width):
    """Write the gradients of x [batch, channels, seq], of the taps and of the bias."""
    g = torch.empty((batch, channels, seq), dtype=torch.float32, device=x.device)
    lines = batch * channels
    grid = (triton.cdiv(lines, 8), triton.cdiv(seq, 128))
    sum_gradient_kernel[grid](
        x, weight, bias, dy, g, lines, channels, seq, width, BLOCK_L=8, BLOCK_T=128, num_warps=4
    )
    input_gradient_kernel[grid](
        weight, g, dx, lines, channels, seq, width, BLOCK_L=8, BLOCK_T=128, num_warps=4
    )
    tap_gradient_kernel[(triton.cdiv(channels, 8), width)](
        x, g, dweight, dbias, batch, channels, seq, width, BLOCK_L=8, BLOCK_T=128, num_warps=4
    )
