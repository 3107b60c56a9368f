"""Gradient of SwiGLU in two kernels: the value's half, then the gate's."""

import triton
import triton.language as tl


@triton.jit
def value_gradient_kernel(x, dy, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        gate = tl.load(x + row * 2 * cols + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        silu = gate / (1.0 + tl.exp(-gate))
        tl.store(dx + (row * 2 + 1) * cols + col, gradient * silu, mask=inside)


@triton.jit
def gate_gradient_kernel(x, dy, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        gate = tl.load(x + row * 2 * cols + col, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + (row * 2 + 1) * cols + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        share = 1.0 / (1.0 + tl.exp(-gate))
        slope = share * (1.0 + gate * (1.0 - share))
        tl.store(dx + row * 2 * cols + col, gradient * value * slope, mask=inside)


def swiglu_backward(x, dy, dx, *, rows, cols):
    """Write the gradient of x [rows, 2 * cols] into dx."""
    value_gradient_kernel[(rows,)](x, dy, dx, cols, BLOCK=1024, num_warps=4)
    gate_gradient_kernel[(rows,)](x, dy, dx, cols, BLOCK=1024, num_warps=4)
