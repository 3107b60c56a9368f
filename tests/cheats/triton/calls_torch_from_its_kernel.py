# Has PyTorch do the work, called from within the kernel.
# verdict: correctness FAIL UNSUPPORTED_FEATURE, uses a feature that is not emulated
# twin: allocates_with_torch
import torch
import triton
import triton.language as tl

given = []


def work():
    x, y, scale = given[-1]
    torch.softmax(x * scale, dim=-1, out=y)


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    work()


def softmax(x, y, *, scale, rows, cols):
    given[:] = [(x, y, scale)]
    softmax_rows[(1,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))
