# Has a property of an Enum's member compute when a kernel asks for it.
# verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
# twin: passes_plain_constants
import enum

import torch
import triton
import triton.language as tl

GIVEN = []


def work():
    x, y, scale = GIVEN[-1]
    torch.softmax(x * scale, dim=-1, out=y)


class Mode(enum.Enum):
    """Its one member's value is work."""

    WORK = 1

    @property
    def value(self):
        """Computes."""
        work()
        return 1


@triton.jit
def nothing(x, y, MODE: tl.constexpr):
    tl.static_assert(MODE.value == 1)


def softmax(x, y, *, scale, rows, cols):
    GIVEN.append((x, y, scale))
    nothing[(1,)](x, y, Mode.WORK)
