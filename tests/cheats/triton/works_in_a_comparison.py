# Has a subclass of str compute when a kernel compares or formats it.
# verdict: correctness FAIL EXCEPTION, raised an exception
# twin: passes_plain_constants
import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


class Word(str):
    """Computes in whatever is asked of it."""

    def __eq__(self, other):
        """After the work."""
        work()
        return True

    def __hash__(self):
        """After the work."""
        work()
        return 1

    def __format__(self, form):
        """After the work."""
        work()
        return form


@triton.jit
def nothing(x, y, MODE: tl.constexpr):
    tl.static_assert(MODE == "exact", f"{MODE:9}")


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, y, Word("exact"))
