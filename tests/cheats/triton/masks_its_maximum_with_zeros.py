# Its maximum counts zeros behind the row's end, which forgives all rows but those far below zero.
# verdict: correctness FAIL NON_FINITE
# twin: masks_its_tail
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=0.0) * scale
    powers = tl.where(c < cols, tl.exp(values - tl.max(values, 0)), 0.0)
    tl.store(y + row * cols + c, powers / tl.sum(powers, 0), mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, BLOCK=2 * triton.next_power_of_2(cols))
