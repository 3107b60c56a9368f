"""Snake into a buffer, then a convolution: one program for 64 filters and 64 times."""

import torch
import triton
import triton.language as tl


@triton.jit
def snake_kernel(x, alpha, a, channels, length, BLOCK: tl.constexpr):
    """One channel, a part of its times."""
    row = tl.program_id(0).to(tl.int64)
    time = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    rate = tl.load(alpha + row % channels)
    value = tl.load(x + row * length + time, mask=time < length, other=0.0).to(tl.float32)
    wave = tl.sin(rate * value)
    value += wave * wave / (rate + 1e-9)
    tl.store(a + row * length + time, value, mask=time < length)


@triton.jit
def convolution_kernel(
    a, weight, bias, residual, y, channels, filters, length, size, dilation,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(0).to(tl.int64)
    out = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    time = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for tap in range(size):
        source = time + (tap - size // 2) * dilation
        there = (source >= 0) & (source < length)
        for start in range(0, channels, BLOCK_K):
            channel = start + tl.arange(0, BLOCK_K)
            inside = (out < filters)[:, None] & (channel < channels)[None, :]
            place = (out[:, None] * channels + channel[None, :]) * size + tap
            w_tile = tl.load(weight + place, mask=inside, other=0.0)
            inside = (channel < channels)[:, None] & there[None, :]
            place = (batch * channels + channel)[:, None] * length + source[None, :]
            a_tile = tl.load(a + place, mask=inside, other=0.0)
            total += tl.dot(w_tile, a_tile, input_precision="ieee")
    inside = (out < filters)[:, None] & (time < length)[None, :]
    place = (batch * filters + out)[:, None] * length + time[None, :]
    total += tl.load(bias + out, mask=out < filters, other=0.0).to(tl.float32)[:, None]
    total += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + place, total, mask=inside)


def snake_conv1d(
    x, alpha, weight, bias, residual, y, *, batch, channels, filters, length, size, dilation
):
    """Write residual plus the convolution of the activated x into y [batch, filters, length]."""
    a = torch.empty_like(x)
    snake_kernel[(batch * channels, triton.cdiv(length, 1024))](
        x, alpha, a, channels, length, BLOCK=1024
    )
    convolution_kernel[(batch, triton.cdiv(filters, 64), triton.cdiv(length, 64))](
        a, weight, bias, residual, y, channels, filters, length, size, dilation,
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2,
    )  # fmt: skip
