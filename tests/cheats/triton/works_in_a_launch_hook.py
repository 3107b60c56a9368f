# Has PyTorch compute in the hook of a kernel's launch.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: autotunes
import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


@triton.jit
def nothing(x, y):
    tl.program_id(0)


nothing.add_pre_run_hook(lambda *a, **k: work())


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, y)
