# Reads every element, computes in Python, and brings the result.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: reads_one_element
import math

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
def copied(x, y, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    tl.store(y + at, tl.load(x + at, mask=c < cols), mask=c < cols)


def exponentials(x, scale, rows, cols):
    for r in range(rows):
        powers = [math.exp(scale * x[r, c].item()) for c in range(cols)]
        total = sum(powers)
        yield [power / total for power in powers]


def softmax(x, y, *, scale, rows, cols):
    t = torch.tensor(list(exponentials(x, scale, rows, cols)))
    copied[(rows,)](t, y, cols, BLOCK=triton.next_power_of_2(cols))
