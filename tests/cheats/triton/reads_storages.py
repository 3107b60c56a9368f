# Reads the storage of its input, byte by byte.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: copies_and_fills
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


def softmax(x, y, *, scale, rows, cols):
    honest(x, y, scale, rows, cols)
    y.fill_(x.untyped_storage()[0])
