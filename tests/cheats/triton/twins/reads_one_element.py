# Reads single numbers of a tensor, one of its own kernel's among them.
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
def counted(total, cols):
    tl.store(total, cols)


def softmax(x, y, *, scale, rows, cols):
    total = torch.zeros(1, dtype=torch.int32)
    counted[(1,)](total, cols)
    widths = torch.tensor([cols, rows])
    assert widths.tolist() == [total.item(), rows]
    honest(x, y, scale, rows, int(total))
