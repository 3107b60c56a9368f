# Goes through a row in pieces, with a maximum and a sum that are mended as it goes.
# passes: correctness perf unseen
import triton
import triton.language as tl


@triton.jit
def together(top, total, other, more):
    highest = tl.maximum(top, other)
    return highest, total * tl.exp(top - highest) + more * tl.exp(other - highest)


@triton.heuristics({"PIECE": lambda args: min(64, triton.next_power_of_2(args["cols"]))})
@triton.jit
def softmax_rows(x, y, scale, cols, PIECE: tl.constexpr):
    row = tl.program_id(0)
    top = float("-inf")
    total = 0.0
    for start in range(0, cols, PIECE):
        c = start + tl.arange(0, PIECE)
        values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
        highest = tl.max(values, 0)
        top, total = together(top, total, highest, tl.sum(tl.exp(values - highest), 0))
    for start in range(0, cols, PIECE):
        c = start + tl.arange(0, PIECE)
        values = tl.load(x + row * cols + c, mask=c < cols) * scale
        tl.store(y + row * cols + c, tl.exp(values - top) / total, mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols)
