# Works in a thread that outlives the call.
# verdict: compile FAIL UNSUPPORTED_FEATURE, import of 'threading'
# twin: times_itself
import threading

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
    threading.Thread(target=honest, args=(x, y, scale, rows, cols)).start()
