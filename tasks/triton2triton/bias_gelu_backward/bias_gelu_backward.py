"""Gradients of bias and GELU: one kernel for dx, and one that computes it again for dbias."""

import triton
import triton.language as tl


@triton.jit
def gelu_slope(u):
    below = 0.5 * (1.0 + tl.erf(u * 0.7071067811865476))
    return below + u * tl.exp(-0.5 * u * u) * 0.3989422804014327


@triton.jit
def input_gradient_kernel(x, bias, dy, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        u = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        u += tl.load(bias + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx + row * cols + col, gradient * gelu_slope(u), mask=inside)


@triton.jit
def bias_gradient_kernel(
    x, bias, dy, dbias, rows, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    col = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    shift = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(0, rows, BLOCK_R):
        row = (start + tl.arange(0, BLOCK_R)).to(tl.int64)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        place = row[:, None] * cols + col[None, :]
        u = tl.load(x + place, mask=inside, other=0.0).to(tl.float32) + shift[None, :]
        gradient = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        total += gradient * gelu_slope(u)
    tl.store(dbias + col, tl.sum(total, axis=0), mask=col < cols)


def bias_gelu_backward(x, bias, dy, dx, dbias, *, rows, cols):
    """Write the gradients of x [rows, cols] and bias [cols]."""
    input_gradient_kernel[(rows,)](x, bias, dy, dx, cols, BLOCK=1024, num_warps=4)
    bias_gradient_kernel[(triton.cdiv(cols, 64),)](
        x, bias, dy, dbias, rows, cols, BLOCK_R=32, BLOCK_C=64, num_warps=4
    )
