"""Batch normalisation: one program a channel for its statistics, then one a row of pixels."""

import triton
import triton.language as tl


@triton.jit
def statistics_kernel(
    x, average, spread, mean, rstd, average_new, spread_new,
    eps, momentum, batch, channels, pixels, BLOCK: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0)
    count = batch * pixels
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        place = ((i // pixels).to(tl.int64) * channels + channel) * pixels + i % pixels
        sums += tl.load(x + place, mask=i < count, other=0.0).to(tl.float32)
    centre = tl.sum(sums, axis=0) / count
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        place = ((i // pixels).to(tl.int64) * channels + channel) * pixels + i % pixels
        value = tl.load(x + place, mask=i < count, other=0.0).to(tl.float32)
        apart = tl.where(i < count, value - centre, 0.0)
        squares += apart * apart
    total = tl.sum(squares, axis=0)
    tl.store(mean + channel, centre)
    tl.store(rstd + channel, tl.rsqrt(total / count + eps))
    old = tl.load(average + channel)
    tl.store(average_new + channel, (1.0 - momentum) * old + momentum * centre)
    old = tl.load(spread + channel)
    tl.store(spread_new + channel, (1.0 - momentum) * old + momentum * total / (count - 1))


@triton.jit
def apply_kernel(x, weight, bias, mean, rstd, y, channels, pixels, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    channel = row % channels
    centre = tl.load(mean + channel)
    scale = tl.load(rstd + channel) * tl.load(weight + channel)
    shift = tl.load(bias + channel)
    for start in range(0, pixels, BLOCK):
        pixel = start + tl.arange(0, BLOCK)
        inside = pixel < pixels
        value = tl.load(x + row * pixels + pixel, mask=inside, other=0.0).to(tl.float32)
        result = tl.maximum((value - centre) * scale + shift, 0.0)
        tl.store(y + row * pixels + pixel, result, mask=inside)


def batch_norm_train(
    x, weight, bias, average, spread, y, mean, rstd, average_new, spread_new,
    *, eps, momentum, batch, channels, pixels,
):  # fmt: skip
    """Normalise x [batch, channels, pixels] into y, and write the statistics of channels."""
    statistics_kernel[(channels,)](
        x, average, spread, mean, rstd, average_new, spread_new,
        eps, momentum, batch, channels, pixels, BLOCK=1024, num_warps=4,
    )  # fmt: skip
    apply_kernel[(batch * channels,)](
        x, weight, bias, mean, rstd, y, channels, pixels,
        BLOCK=min(1024, triton.next_power_of_2(pixels)), num_warps=4,
    )  # fmt: skip
