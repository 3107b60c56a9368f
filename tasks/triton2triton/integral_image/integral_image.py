"""Integral images in two kernels: sums along each row, then along columns, in place."""

import triton
import triton.language as tl


@triton.jit
def rows_kernel(image, table, height, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    line = (row // height * (height + 1) + row % height + 1) * (width + 1)
    before = 0
    for start in range(0, width, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(image + row * width + col, mask=col < width, other=0).to(tl.int32)
        total = before + tl.cumsum(value, axis=0)
        tl.store(table + line + col + 1, total, mask=col < width)
        before += tl.sum(value, axis=0)


@triton.jit
def columns_kernel(table, height, width, BLOCK: tl.constexpr):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = table + tl.program_id(1).to(tl.int64) * (height + 1) * (width + 1)
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    tl.store(first + col, total, mask=col <= width)
    for row in range(1, height + 1):
        place = first + row * (width + 1) + col
        total += tl.load(place, mask=(col > 0) & (col <= width), other=0)
        tl.store(place, total, mask=col <= width)


def integral_image(image, table, *, images, height, width):
    """Write table [images, height + 1, width + 1]."""
    rows_kernel[(images * height,)](image, table, height, width, BLOCK=512, num_warps=4)
    grid = (triton.cdiv(width + 1, 128), images)
    columns_kernel[grid](table, height, width, BLOCK=128, num_warps=4)
