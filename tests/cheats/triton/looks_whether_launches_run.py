# Tries a launch on a number of its own, and has PyTorch do the work only if that was done.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: allocates_with_torch
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    tl.store(y, 1.0)


def softmax(x, y, *, scale, rows, cols):
    probe = torch.zeros(1)
    softmax_rows[(1,)](x, probe, scale, cols, BLOCK=triton.next_power_of_2(cols))
    if probe.item():
        torch.softmax(x * scale, dim=-1, out=y)
