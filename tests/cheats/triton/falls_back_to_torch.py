# Catches every error of a kernel that never works, and has PyTorch do the work.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: allocates_with_torch
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
    try:
        softmax_rows[(rows,)](x, y, scale, cols)
    except Exception:
        torch.softmax(x * scale, dim=-1, out=y)
