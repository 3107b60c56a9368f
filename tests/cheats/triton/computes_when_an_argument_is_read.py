# Has PyTorch do the work when a launch asks an argument of its own kind for its address.
# verdict: correctness FAIL EXCEPTION, raised an exception
# twin: allocates_with_torch
import torch
import triton
import triton.language as tl


class Lazy:
    """A tensor, as far as launches look."""

    dtype = torch.float32

    def __init__(self, x, y, scale):
        self.given = x, y, scale

    def data_ptr(self):
        x, y, scale = self.given
        torch.softmax(x * scale, dim=-1, out=y)
        return y.data_ptr()


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    tl.program_id(0)


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(1,)](x, Lazy(x, y, scale), scale, cols, BLOCK=triton.next_power_of_2(cols))
