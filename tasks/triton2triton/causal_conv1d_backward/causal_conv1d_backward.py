"""Gradients of a causal convolution with SiLU, in three kernels with a float32 buffer between.

The first has the gradients of the sums, the second those of the inputs, and the third, with one
program a channel, those of taps and bias.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_gradient_kernel(x, weight, bias, dy, g, channels, seq, width, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    channel = line % channels
    time = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = time < seq
    z = tl.zeros((BLOCK,), dtype=tl.float32) + tl.load(bias + channel).to(tl.float32)
    for tap in range(width):
        source = time - (width - 1) + tap
        value = tl.load(x + line * seq + source, mask=inside & (source >= 0), other=0.0)
        z += tl.load(weight + channel * width + tap).to(tl.float32) * value.to(tl.float32)
    share = 1.0 / (1.0 + tl.exp(-z))
    gradient = tl.load(dy + line * seq + time, mask=inside, other=0.0).to(tl.float32)
    tl.store(g + line * seq + time, gradient * share * (1.0 + z * (1.0 - share)), mask=inside)


@triton.jit
def input_gradient_kernel(weight, g, dx, channels, seq, width, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    channel = line % channels
    time = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for tap in range(width):
        source = time + (width - 1) - tap
        gradient = tl.load(g + line * seq + source, mask=source < seq, other=0.0)
        total += tl.load(weight + channel * width + tap).to(tl.float32) * gradient
    tl.store(dx + line * seq + time, total, mask=time < seq)


@triton.jit
def tap_gradient_kernel(
    x, g, dweight, dbias, batch, channels, seq, width, BLOCK: tl.constexpr, BLOCK_W: tl.constexpr
):
    channel = tl.program_id(0).to(tl.int64)
    tap = tl.arange(0, BLOCK_W)
    of_taps = tl.zeros((BLOCK_W, BLOCK), dtype=tl.float32)
    of_bias = tl.zeros((BLOCK,), dtype=tl.float32)
    for sequence in range(batch):
        begin = (sequence * channels + channel) * seq
        for start in range(0, seq, BLOCK):
            time = start + tl.arange(0, BLOCK)
            gradient = tl.load(g + begin + time, mask=time < seq, other=0.0)
            source = time[None, :] - (width - 1) + tap[:, None]
            inside = (time < seq)[None, :] & (source >= 0) & (tap < width)[:, None]
            value = tl.load(x + begin + source, mask=inside, other=0.0).to(tl.float32)
            of_taps += gradient[None, :] * value
            of_bias += gradient
    tl.store(dweight + channel * width + tap, tl.sum(of_taps, axis=1), mask=tap < width)
    tl.store(dbias + channel, tl.sum(of_bias, axis=0))


def causal_conv1d_backward(x, weight, bias, dy, dx, dweight, dbias, *, batch, channels, seq, width):
    """Write the gradients of x [batch, channels, seq], of the taps and of the bias."""
    g = torch.empty((batch, channels, seq), dtype=torch.float32, device=x.device)
    grid = (batch * channels, triton.cdiv(seq, 512))
    sum_gradient_kernel[grid](x, weight, bias, dy, g, channels, seq, width, BLOCK=512, num_warps=4)
    input_gradient_kernel[grid](weight, g, dx, channels, seq, width, BLOCK=512, num_warps=4)
    tap_gradient_kernel[(channels,)](
        x, g, dweight, dbias, batch, channels, seq, width, BLOCK=512, BLOCK_W=4, num_warps=4
    )
