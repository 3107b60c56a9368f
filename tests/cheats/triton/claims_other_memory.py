# Names memory of the process that runs its kernels as a tensor's, and has a kernel use that.
# verdict: correctness REJECTED OUT_OF_BOUNDS, outside its tensors
# twin: keeps_a_workspace
import operator

import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * cols + c, powers / tl.sum(powers, 0), mask=c < cols)


@triton.jit
def kept(p):
    tl.store(p, tl.load(p))


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))
    definitions = operator.attrgetter("definitions")(softmax_rows)
    number = definitions.number(kept)
    link = operator.attrgetter("device._link")(definitions)
    at = id(link)
    request = ["launch", number, [1, 1, 1], {"p": ["pointer", "*i64", at, at, 8]}, []]
    operator.methodcaller("send", request)(link)
    operator.methodcaller("receive")(link)
