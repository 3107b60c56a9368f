"""RMS normalisation to int8 in three walks over a row: its scale, its maximum, its steps."""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_quant_kernel(x, weight, q, scale, eps, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * cols + col, mask=col < cols, other=0.0).to(tl.float32)
        squares += value * value
    factor = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * cols + col, mask=col < cols, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(value * factor * gain))
    step = tl.max(largest, axis=0) / 127.0
    tl.store(scale + row, step)
    inverse = tl.where(step > 0.0, 1.0 / step, 0.0)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * cols + col, mask=col < cols, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
        steps = tl.floor(value * factor * gain * inverse + 0.5)
        steps = tl.minimum(tl.maximum(steps, -127.0), 127.0)
        tl.store(q + row * cols + col, steps.to(tl.int8), mask=col < cols)


def rmsnorm_quant(x, weight, q, scale, *, eps, rows, cols):
    """Normalise x [rows, cols] into steps q [rows, cols] of scale [rows]."""
    rmsnorm_quant_kernel[(rows,)](x, weight, q, scale, eps, cols, BLOCK=1024, num_warps=4)
