"""A 3 x 3 convolution as a matrix product: tiles of pixels by filters, over taps and channels."""

import triton
import triton.language as tl


@triton.jit
def conv_kernel(
    x, weight, bias, y, pixels, height, width, channels, filters,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    out = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = pixel // width % height
    col = pixel % width
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for tap in range(9):
        down = tap // 3 - 1
        right = tap % 3 - 1
        there = (row + down >= 0) & (row + down < height) & (pixel < pixels)
        there = there & (col + right >= 0) & (col + right < width)
        source = (pixel + down * width + right) * channels
        for start in range(0, channels, BLOCK_K):
            channel = start + tl.arange(0, BLOCK_K)
            known = channel < channels
            x_place = source[:, None] + channel[None, :]
            x_tile = tl.load(x + x_place, mask=there[:, None] & known[None, :], other=0.0)
            w_place = (out * 9 + tap)[:, None] * channels + channel[None, :]
            w_inside = (out < filters)[:, None] & known[None, :]
            w_tile = tl.load(weight + w_place, mask=w_inside, other=0.0)
            total += tl.dot(x_tile, tl.trans(w_tile), input_precision="ieee")
    total += tl.load(bias + out, mask=out < filters, other=0.0).to(tl.float32)[None, :]
    inside = (pixel < pixels)[:, None] & (out < filters)[None, :]
    tl.store(y + pixel[:, None] * filters + out[None, :], tl.maximum(total, 0.0), mask=inside)


def conv2d_relu(x, weight, bias, y, *, images, height, width, channels, filters):
    """Convolve x [images, height, width, channels] with filters of 3 x 3."""
    pixels = images * height * width
    conv_kernel[(triton.cdiv(pixels, 64), triton.cdiv(filters, 64))](
        x, weight, bias, y, pixels, height, width, channels, filters,
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2,
    )  # fmt: skip
