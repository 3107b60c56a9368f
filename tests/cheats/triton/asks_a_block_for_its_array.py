# Has a kernel compute with the interpreter's arrays.
# verdict: correctness FAIL EXCEPTION, raised an exception
# twin: passes_plain_constants
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    values = tl.load(x + at, mask=c < cols, other=float("-inf")) * scale
    values.handle.data.fill(values.handle.data.max())
    tl.store(y + at, values, mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))
