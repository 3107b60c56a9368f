# Has a default argument of a device function compute when that is called.
# verdict: correctness FAIL EXCEPTION, raised an exception
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


HOLDER = Holder()


@triton.jit
def helper(value, holder=HOLDER):
    return value + holder.anything


@triton.jit
def nothing(x, y):
    tl.store(y, helper(1))


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, y)
