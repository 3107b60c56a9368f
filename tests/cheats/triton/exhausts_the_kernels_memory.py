# Has a kernel format a number with more blanks than there is memory, to end without a verdict.
# verdict: correctness FAIL OUT_OF_MEMORY, ran out of memory
# twin: prints
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 0, f"{BLOCK:>9000000000}")


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))
