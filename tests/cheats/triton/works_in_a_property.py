# Passes an object whose properties, which a launch asks for, compute.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: allocates_with_torch
import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


class Pretender:
    """Computes when it is taken for a tensor."""

    @property
    def data_ptr(self):
        """After the work."""
        work()
        return None

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """After the work."""
        work()


@triton.jit
def nothing(x, y):
    tl.program_id(0)


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, Pretender())
