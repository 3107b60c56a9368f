"""RMS normalisation in two kernels: the scale of each row, then the product."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_scale_kernel(x, scale, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * cols + col, mask=col < cols, other=0.0).to(tl.float32)
        squares += value * value
    tl.store(scale + row, tl.rsqrt(tl.sum(squares, axis=0) / cols + eps))


@triton.jit
def apply_scale_kernel(x, weight, scale, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    factor = tl.load(scale + row)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * cols + col, value * factor * gain, mask=inside)


def rmsnorm(x, weight, y, *, eps, rows, cols):
    """Normalise x [rows, cols] into y."""
    scale = torch.empty(rows, dtype=torch.float32, device=x.device)
    # kabuild:tune BLOCK = 256, 512, 1024, 2048, 4096
    # kabuild:tune num_warps = 1, 2, 4, 8, 16
    row_scale_kernel[(rows,)](x, scale, cols, eps, BLOCK=1024, num_warps=4)
    # kabuild:tune BLOCK = 256, 512, 1024, 2048, 4096
    # kabuild:tune num_warps = 1, 2, 4, 8, 16
    apply_scale_kernel[(rows,)](x, weight, scale, y, cols, BLOCK=1024, num_warps=4)
