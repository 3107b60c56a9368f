# Has PyTorch do the work in the function that says how large the grid is.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: allocates_with_torch
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    tl.program_id(0)


def softmax(x, y, *, scale, rows, cols):
    def grid(meta):
        torch.softmax(x * scale, dim=-1, out=y)
        return (1,)

    softmax_rows[grid](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))
