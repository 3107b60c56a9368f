"""Gradients of layer normalisation: one kernel along rows, another along columns."""

import triton
import triton.language as tl


@triton.jit
def input_gradient_kernel(x, weight, mean, rstd, dy, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    centre = tl.load(mean + row)
    scale = tl.load(rstd + row)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32) * gain
        sums += gradient
        products += gradient * ((value - centre) * scale)
    average = tl.sum(sums, axis=0) / cols
    along = tl.sum(products, axis=0) / cols
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32) * gain
        normal = (value - centre) * scale
        result = scale * (gradient - average - normal * along)
        tl.store(dx + row * cols + col, result, mask=inside)


@triton.jit
def parameter_gradient_kernel(
    x, mean, rstd, dy, dweight, dbias, rows, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    col = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    of_weight = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    of_bias = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(0, rows, BLOCK_R):
        row = (start + tl.arange(0, BLOCK_R)).to(tl.int64)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        place = row[:, None] * cols + col[None, :]
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        centre = tl.load(mean + row, mask=row < rows, other=0.0)
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)
        of_weight += gradient * ((value - centre[:, None]) * scale[:, None])
        of_bias += gradient
    tl.store(dweight + col, tl.sum(of_weight, axis=0), mask=col < cols)
    tl.store(dbias + col, tl.sum(of_bias, axis=0), mask=col < cols)


def layernorm_backward(x, weight, mean, rstd, dy, dx, dweight, dbias, *, rows, cols):
    """Write the gradients of x [rows, cols], weight [cols] and bias [cols]."""
    input_gradient_kernel[(rows,)](x, weight, mean, rstd, dy, dx, cols, BLOCK=1024, num_warps=4)
    parameter_gradient_kernel[(triton.cdiv(cols, 64),)](
        x, mean, rstd, dy, dweight, dbias, rows, cols, BLOCK_R=32, BLOCK_C=64, num_warps=4
    )
