# Hides an object of its own in a tuple that a kernel gets.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: passes_plain_constants
import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


class Holder:
    """Computes when it is asked."""

    def __getattr__(self, name):
        """After the work."""
        work()
        return 1


@triton.jit
def nothing(x, y, PAIR: tl.constexpr):
    tl.static_assert(PAIR[1].anything == 1)


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, y, (1, Holder()))
