"""Gradients of RMS normalisation: one kernel along rows, another along columns."""

import triton
import triton.language as tl


@triton.jit
def input_gradient_kernel(x, weight, rstd, dy, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scale = tl.load(rstd + row)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        products += gradient * gain * (value * scale)
    along = tl.sum(products, axis=0) / cols
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        result = scale * (gradient * gain - value * scale * along)
        tl.store(dx + row * cols + col, result, mask=inside)


@triton.jit
def weight_gradient_kernel(
    x, rstd, dy, dweight, rows, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    col = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    total = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(0, rows, BLOCK_R):
        row = (start + tl.arange(0, BLOCK_R)).to(tl.int64)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        place = row[:, None] * cols + col[None, :]
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)
        total += gradient * value * scale[:, None]
    tl.store(dweight + col, tl.sum(total, axis=0), mask=col < cols)


def rmsnorm_backward(x, weight, rstd, dy, dx, dweight, *, rows, cols):
    """Write the gradients of x [rows, cols] and weight [cols] into dx and dweight."""
    input_gradient_kernel[(rows,)](x, weight, rstd, dy, dx, cols, BLOCK=1024, num_warps=4)
    weight_gradient_kernel[(triton.cdiv(cols, 64),)](
        x, rstd, dy, dweight, rows, cols, BLOCK_R=32, BLOCK_C=64, num_warps=4
    )
