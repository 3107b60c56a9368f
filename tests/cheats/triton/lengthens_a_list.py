# Has a program lengthen a list of its module by a block, for the next program.
# verdict: correctness FAIL WRONG_RESULT, differs from the reference
# twin: reads_constants_by_index
import triton
import triton.language as tl

KEPT = [0.0]


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) // 2 * cols
    c = tl.arange(0, BLOCK)
    if tl.program_id(0) % 2 == 0:
        values = tl.load(x + at + c, mask=c < cols, other=float("-inf")) * scale
        powers = tl.exp(values - tl.max(values, 0))
        kept = KEPT
        kept += [powers / tl.sum(powers, 0)]
    else:
        tl.store(y + at + c, KEPT[-1], mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(2 * rows,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))
