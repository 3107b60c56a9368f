# Has PyTorch compute in a heuristic.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: autotunes
import torch
import triton
import triton.language as tl


def work(arguments):
    torch.softmax(arguments["x"] * arguments["scale"], dim=-1, out=arguments["y"])
    return 1


@triton.heuristics({"EVEN": work})
@triton.jit
def nothing(x, y, scale, cols, EVEN: tl.constexpr):
    tl.program_id(0)


def softmax(x, y, *, scale, rows, cols):
    nothing[(1,)](x, y, scale, cols)
