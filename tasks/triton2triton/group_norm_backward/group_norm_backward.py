"""Gradients of group normalisation: a program for each group of an image, and one a channel."""

import triton
import triton.language as tl


@triton.jit
def input_kernel(x, weight, mean, rstd, dy, dx, groups, width, pixels, BLOCK: tl.constexpr):
    """dx of one group of one image, which is read for its sums and again for the result."""
    group = tl.program_id(0).to(tl.int64)  # of all images
    channel = group % groups * width
    count = width * pixels
    base = group * count
    centre = tl.load(mean + group)
    scale = tl.load(rstd + group)
    plain = tl.zeros((BLOCK,), dtype=tl.float32)
    along = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < count
        factor = tl.load(weight + channel + i // pixels, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + base + i, mask=inside, other=0.0).to(tl.float32) * factor
        value = tl.load(x + base + i, mask=inside, other=0.0).to(tl.float32)
        plain += gradient
        along += gradient * (value - centre) * scale
    average = tl.sum(plain, axis=0) / count
    slope = tl.sum(along, axis=0) / count
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < count
        factor = tl.load(weight + channel + i // pixels, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + base + i, mask=inside, other=0.0).to(tl.float32) * factor
        value = tl.load(x + base + i, mask=inside, other=0.0).to(tl.float32)
        normal = (value - centre) * scale
        tl.store(dx + base + i, scale * (gradient - average - normal * slope), mask=inside)


@triton.jit
def weight_kernel(
    x, mean, rstd, dy, dweight, dbias, batch, groups, width, pixels, BLOCK: tl.constexpr
):
    """dweight and dbias of one channel, over all images."""
    channel = tl.program_id(0)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    gradients = tl.zeros((BLOCK,), dtype=tl.float32)
    for image in range(batch):
        group = image * groups + channel // width
        centre = tl.load(mean + group)
        scale = tl.load(rstd + group)
        base = (image * groups * width + channel).to(tl.int64) * pixels
        for start in range(0, pixels, BLOCK):
            pixel = start + tl.arange(0, BLOCK)
            inside = pixel < pixels
            gradient = tl.load(dy + base + pixel, mask=inside, other=0.0).to(tl.float32)
            value = tl.load(x + base + pixel, mask=inside, other=0.0).to(tl.float32)
            products += gradient * (value - centre) * scale
            gradients += gradient
    tl.store(dweight + channel, tl.sum(products, axis=0))
    tl.store(dbias + channel, tl.sum(gradients, axis=0))


def group_norm_backward(
    x, weight, mean, rstd, dy, dx, dweight, dbias, *, batch, groups, width, pixels
):
    """Write dx [batch, groups * width, pixels], and dweight and dbias [groups * width]."""
    input_kernel[(batch * groups,)](
        x, weight, mean, rstd, dy, dx, groups, width, pixels, BLOCK=1024, num_warps=4
    )
    weight_kernel[(groups * width,)](
        x, mean, rstd, dy, dweight, dbias, batch, groups, width, pixels, BLOCK=512, num_warps=4
    )
