# Has a kernel compute a constant of so many digits that no memory holds them.
# verdict: correctness FAIL OUT_OF_MEMORY, ran out of memory
# twin: passes_plain_constants
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * cols + c, powers / tl.sum(powers, 0), mask=c < cols)


def honest(x, y, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))


@triton.jit
def counted(y, N: tl.constexpr):
    number: tl.constexpr = 1 << (N * 1000000000)
    tl.store(y, 0.0, mask=number == 5)


def softmax(x, y, *, scale, rows, cols):
    counted[(1,)](y, 400)
    honest(x, y, scale, rows, cols)
