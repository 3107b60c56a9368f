"""Max pooling with indices: one program for 256 elements of a plane, a walk over their windows."""

import triton
import triton.language as tl


@triton.jit
def pool_kernel(x, y, index, height, width, rows, cols, window, stride, pad, BLOCK: tl.constexpr):
    plane = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < rows * cols
    top = i // cols * stride - pad
    left = i % cols * stride - pad
    most = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    place = tl.zeros((BLOCK,), dtype=tl.int32)
    for down in range(window):
        for across in range(window):
            row = top + down
            col = left + across
            known = inside & (row >= 0) & (row < height) & (col >= 0) & (col < width)
            source = x + plane * height * width + row * width + col
            value = tl.load(source, mask=known, other=float("-inf")).to(tl.float32)
            place = tl.where(value > most, row * width + col, place)
            most = tl.maximum(most, value)
    tl.store(y + plane * rows * cols + i, most, mask=inside)
    tl.store(index + plane * rows * cols + i, place, mask=inside)


def max_pool_indices(x, y, index, *, planes, height, width, window, stride, pad):
    """Write y and index [planes, rows, cols]."""
    rows = (height + 2 * pad - window) // stride + 1
    cols = (width + 2 * pad - window) // stride + 1
    pool_kernel[(planes, triton.cdiv(rows * cols, 256))](
        x, y, index, height, width, rows, cols, window, stride, pad, BLOCK=256, num_warps=4
    )
