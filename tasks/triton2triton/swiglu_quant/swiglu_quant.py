"""SwiGLU into a float32 buffer, then its groups quantised: one program a row in both kernels."""

import torch
import triton
import triton.language as tl

LEAST = tl.constexpr(1e-20)  # a group of smaller products counts as zeros


@triton.jit
def swiglu_kernel(x, product, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        gate = tl.load(x + row * 2 * cols + col, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + (row * 2 + 1) * cols + col, mask=inside, other=0.0).to(tl.float32)
        tl.store(product + row * cols + col, gate / (1.0 + tl.exp(-gate)) * value, mask=inside)


@triton.jit
def quantise_kernel(product, q, scale, groups, GROUP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for group in range(groups):
        place = (row * groups + group) * GROUP + tl.arange(0, GROUP)
        value = tl.load(product + place)
        largest = tl.max(tl.abs(value), axis=0)
        step = tl.where(largest < LEAST, 0.0, largest) / 127.0
        inverse = tl.where(step > 0.0, 1.0 / step, 0.0)
        steps = tl.floor(value * inverse + 0.5)
        steps = tl.minimum(tl.maximum(steps, -127.0), 127.0)
        tl.store(q + place, steps.to(tl.int8))
        tl.store(scale + row * groups + group, step)


def swiglu_quant(x, q, scale, *, rows, groups):
    """Gate, multiply and quantise x [rows, 2 * 128 * groups]."""
    product = torch.empty((rows, groups * 128), dtype=torch.float32, device=x.device)
    swiglu_kernel[(rows,)](x, product, groups * 128, BLOCK=1024, num_warps=4)
    quantise_kernel[(rows,)](product, q, scale, groups, GROUP=128, num_warps=4)
