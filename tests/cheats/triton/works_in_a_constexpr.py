# Has a subclass of constexpr compute when a kernel adds to it.
# verdict: correctness FAIL EXCEPTION, raised an exception
# twin: passes_plain_constants
import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


class Constant(tl.constexpr):
    """Computes when it is added."""

    def __add__(self, other):
        """After the work."""
        work()
        return other


@triton.jit
def nothing(x, y, VALUE: tl.constexpr):
    tl.static_assert(VALUE + 1 == 1)


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, y, Constant(1))
