"""Gradients of batch normalisation: sums of each channel, then all elements."""

import triton
import triton.language as tl


@triton.jit
def sums_kernel(
    x, passed, mean, rstd, dy, dweight, dbias, batch, channels, pixels, BLOCK: tl.constexpr
):
    channel = tl.program_id(0)
    count = batch * pixels
    centre = tl.load(mean + channel)
    scale = tl.load(rstd + channel)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < count
        place = ((i // pixels).to(tl.int64) * channels + channel) * pixels + i % pixels
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.where(tl.load(passed + place, mask=inside, other=0) > 0, gradient, 0.0)
        sums += gradient
        products += gradient * ((value - centre) * scale)
    tl.store(dweight + channel, tl.sum(products, axis=0))
    tl.store(dbias + channel, tl.sum(sums, axis=0))


@triton.jit
def input_kernel(
    x,
    passed,
    weight,
    mean,
    rstd,
    dy,
    dweight,
    dbias,
    dx,
    count,
    channels,
    pixels,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    channel = row % channels
    centre = tl.load(mean + channel)
    scale = tl.load(rstd + channel)
    gain = tl.load(weight + channel) * scale
    average = tl.load(dbias + channel) / count
    along = tl.load(dweight + channel) / count
    for start in range(0, pixels, BLOCK):
        pixel = start + tl.arange(0, BLOCK)
        inside = pixel < pixels
        place = row * pixels + pixel
        normal = (tl.load(x + place, mask=inside, other=0.0).to(tl.float32) - centre) * scale
        gradient = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.where(tl.load(passed + place, mask=inside, other=0) > 0, gradient, 0.0)
        tl.store(dx + place, gain * (gradient - average - normal * along), mask=inside)


def batch_norm_backward(
    x, passed, weight, mean, rstd, dy, dx, dweight, dbias, *, batch, channels, pixels
):
    """Write the gradients of x [batch, channels, pixels], weight and bias [channels]."""
    sums_kernel[(channels,)](
        x, passed, mean, rstd, dy, dweight, dbias, batch, channels, pixels, BLOCK=1024, num_warps=4
    )
    input_kernel[(batch * channels,)](
        x, passed, weight, mean, rstd, dy, dweight, dbias, dx, batch * pixels, channels, pixels,
        BLOCK=min(1024, triton.next_power_of_2(pixels)), num_warps=4,
    )  # fmt: skip
