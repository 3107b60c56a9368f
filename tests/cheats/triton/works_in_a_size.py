# Has the size of a grid compute when it is read as a number.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: launches_in_parts
import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


class Size:
    """Computes when it is an index."""

    def __index__(self):
        """After the work."""
        work()
        return 1


@triton.jit
def nothing(x, y):
    tl.program_id(0)


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(Size(),)](x, y)
