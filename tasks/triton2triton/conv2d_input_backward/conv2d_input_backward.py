"""Gradient of a convolution's input: one program for 64 pixels and 64 channels, tap by tap."""

import triton
import triton.language as tl


@triton.jit
def gradient_kernel(
    passed, dy, weight, dx, pixels, height, width, rows, columns, channels, filters, stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    channel = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    image = pixel // (height * width)
    u = pixel // width % height
    v = pixel % width
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for tap in range(9):
        down = u + 1 - tap // 3
        right = v + 1 - tap % 3
        r = down // stride
        c = right // stride
        hit = (down >= 0) & (right >= 0) & (down % stride == 0) & (right % stride == 0)
        hit = hit & (r < rows) & (c < columns) & (pixel < pixels)
        line = (image * rows + r) * columns + c
        for start in range(0, filters, BLOCK_K):
            depth = start + tl.arange(0, BLOCK_K)
            inside = hit[:, None] & (depth < filters)[None, :]
            place = line[:, None] * filters + depth[None, :]
            gradient = tl.load(dy + place, mask=inside, other=0.0)
            kept = tl.load(passed + place, mask=inside, other=0) != 0
            gradient = tl.where(kept, gradient, 0.0)
            inside = (depth < filters)[:, None] & (channel < channels)[None, :]
            place = (depth[:, None] * 9 + tap) * channels + channel[None, :]
            w_tile = tl.load(weight + place, mask=inside, other=0.0)
            total += tl.dot(gradient.to(w_tile.dtype), w_tile, input_precision="ieee")
    inside = (pixel < pixels)[:, None] & (channel < channels)[None, :]
    tl.store(dx + pixel[:, None] * channels + channel[None, :], total, mask=inside)


def conv2d_input_backward(
    passed, dy, weight, dx, *, images, height, width, channels, filters, stride
):  # fmt: skip
    """Write dx [images, height, width, channels]."""
    pixels = images * height * width
    rows, columns = triton.cdiv(height, stride), triton.cdiv(width, stride)
    gradient_kernel[(triton.cdiv(pixels, 64), triton.cdiv(channels, 64))](
        passed, dy, weight, dx, pixels, height, width, rows, columns, channels, filters, stride,
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2,
    )  # fmt: skip
