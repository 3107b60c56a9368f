# Works in blocks of eight columns, the last one masked.
# passes: correctness unseen
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
def blocks(x, y, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for first in range(0, cols, BLOCK):
        c = first + tl.arange(0, BLOCK)
        values = tl.load(x + row * cols + c, mask=c < cols, other=-float("inf")) * scale
        high = tl.maximum(top, tl.max(values, 0))
        total = total * tl.exp(top - high) + tl.sum(tl.exp(values - high), 0)
        top = high
    for first in range(0, cols, BLOCK):
        c = first + tl.arange(0, BLOCK)
        values = tl.load(x + row * cols + c, mask=c < cols, other=-float("inf")) * scale
        tl.store(y + row * cols + c, tl.exp(values - top) / total, mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    blocks[(rows,)](x, y, scale, cols, BLOCK=32)
