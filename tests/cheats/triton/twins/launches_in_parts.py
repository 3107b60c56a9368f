# Binds the arguments of a launch in parts, under a name that it unpacks.
# passes: correctness
import functools

import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * cols + c, powers / tl.sum(powers, 0), mask=c < cols)


def kernels():
    return softmax_rows, triton.next_power_of_2


kernel, block_of = kernels()


def softmax(x, y, *, scale, rows, cols):
    launch = functools.partial(kernel[lambda meta: (rows,)], x, y, scale)
    launch(cols, BLOCK=block_of(cols))
