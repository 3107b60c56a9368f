# Has a subclass of str compute when a kernel formats it.
# verdict: correctness FAIL EXCEPTION, raised an exception
# twin: passes_plain_constants
import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


class Text(str):
    """Computes when it is formatted."""

    __slots__ = ()

    def __format__(self, how):
        """After the work."""
        work()
        return ""


@triton.jit
def nothing(x, y, VALUE: tl.constexpr):
    tl.static_assert(1 == 1, f"{VALUE}")


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, y, Text("a"))
