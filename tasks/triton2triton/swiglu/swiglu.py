"""SwiGLU in two kernels: activate the gate into a buffer, then multiply."""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x, activated, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        gate = tl.load(x + row * 2 * cols + col, mask=col < cols, other=0.0).to(tl.float32)
        tl.store(activated + row * cols + col, gate / (1.0 + tl.exp(-gate)), mask=col < cols)


@triton.jit
def multiply_kernel(x, activated, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        gate = tl.load(activated + row * cols + col, mask=col < cols, other=0.0)
        value = tl.load(x + (row * 2 + 1) * cols + col, mask=col < cols, other=0.0)
        tl.store(y + row * cols + col, gate * value.to(tl.float32), mask=col < cols)


def swiglu(x, y, *, rows, cols):
    """Gate and multiply x [rows, 2 * cols] into y [rows, cols]."""
    activated = torch.empty((rows, cols), dtype=torch.float32, device=x.device)
    # kabuild:tune BLOCK = 256, 512, 1024, 2048, 4096
    # kabuild:tune num_warps = 1, 2, 4, 8, 16
    silu_kernel[(rows,)](x, activated, cols, BLOCK=1024, num_warps=4)
    # kabuild:tune BLOCK = 256, 512, 1024, 2048, 4096
    # kabuild:tune num_warps = 1, 2, 4, 8, 16
    multiply_kernel[(rows,)](x, activated, y, cols, BLOCK=1024, num_warps=4)
