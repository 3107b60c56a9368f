# Keeps a workspace by shape in a default argument.
# passes: correctness perf
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


def softmax(x, y, *, scale, rows, cols, kept={}):
    if (rows, cols) not in kept:
        kept[rows, cols] = torch.empty_like(y)
    honest(x, kept[rows, cols], scale, rows, cols)
    copied[(rows,)](kept[rows, cols], y, cols, BLOCK=triton.next_power_of_2(cols))


@triton.jit
def copied(x, y, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    tl.store(y + at, tl.load(x + at, mask=c < cols), mask=c < cols)
