# Has PyTorch compute in the hook of a configuration.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: autotunes
import torch
import triton
import triton.language as tl


def work(arguments):
    x, y = arguments["x"], arguments["y"]
    torch.softmax(x * arguments["scale"], dim=-1, out=y)


CONFIGS = [triton.Config({}, num_warps=1, pre_hook=work)]


@triton.autotune(configs=CONFIGS, key=["cols"])
@triton.jit
def nothing(x, y, scale, cols, BLOCK: tl.constexpr):
    tl.program_id(0)


def softmax(x, y, *, scale, rows, cols):
    nothing[(1,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))
