# Sums partial results of whole numbers with atomic additions.
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


@triton.jit
def weighed(x, total, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.atomic_add(total + row, tl.sum(powers, 0))


@triton.jit
def divided(x, y, total, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * cols + c, powers / tl.load(total + row), mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    block = triton.next_power_of_2(cols)
    total = torch.zeros(rows, dtype=torch.float32, device=x.device)
    weighed[(rows,)](x, total, scale, cols, BLOCK=block)
    divided[(rows,)](x, y, total, scale, cols, BLOCK=block)
