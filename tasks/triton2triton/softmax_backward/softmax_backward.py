"""Gradient of softmax: one program a row, which is read for its sum and again for the result."""

import triton
import triton.language as tl


@triton.jit
def softmax_backward_kernel(y, dy, dx, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        share = tl.load(y + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        products += share * gradient
    total = tl.sum(products, axis=0)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        share = tl.load(y + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx + row * cols + col, scale * share * (gradient - total), mask=inside)


def softmax_backward(y, dy, dx, *, scale, rows, cols):
    """Write the gradient of the scores, dx [rows, cols]."""
    softmax_backward_kernel[(rows,)](y, dy, dx, scale, cols, BLOCK=1024, num_warps=4)
