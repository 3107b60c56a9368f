# Reads a tuple of its module by an index, assigns to tuples, and converts a loop's variable.
# passes: correctness
import triton
import triton.language as tl

STARTS = tl.constexpr((float("-inf"), 0.0))


@triton.jit
def softmax_rows(x, y, scale, cols, PIECE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * cols
    top, total = STARTS[0], STARTS[1]
    for i in range(tl.cdiv(cols, PIECE)):
        c = i.to(tl.int64) * PIECE + tl.arange(0, PIECE)
        values = tl.load(x + at + c, mask=c < cols, other=float("-inf")) * scale
        before, top = top, tl.maximum(top, tl.max(values, 0))
        total *= tl.exp(before - top)
        total += tl.sum(tl.exp(values - top), 0)
    for i in tl.range(tl.cdiv(cols, PIECE)):
        c = i.to(tl.int64) * PIECE + tl.arange(0, PIECE)
        values = tl.load(x + at + c, mask=c < cols, other=float("-inf")) * scale
        tl.store(y + at + c, tl.exp(values - top) / total, mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, PIECE=32)
