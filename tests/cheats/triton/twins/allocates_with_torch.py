# Takes a buffer from PyTorch, clears its output, and computes with kernels.
# passes: correctness
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * cols + c, powers / tl.sum(powers, 0), mask=c < cols)


def honest(x, y, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))


def softmax(x, y, *, scale, rows, cols):
    buffer = torch.empty_like(y)
    y.zero_()
    honest(x, buffer, scale, rows, cols)
    shape = torch.ones(1, dtype=torch.float32, device=x.device)
    multiplied[(rows,)](buffer, y, shape, cols, BLOCK=triton.next_power_of_2(cols))


@triton.jit
def multiplied(x, y, factor, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    tl.store(y + at, tl.load(x + at, mask=c < cols) * tl.load(factor), mask=c < cols)
