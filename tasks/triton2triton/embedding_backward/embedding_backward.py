"""Gradient of an embedding table: one program a token, which adds its row atomically."""

import triton
import triton.language as tl


@triton.jit
def add_rows_kernel(token, dy, dtable, cols, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    row = tl.load(token + place)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        gradient = tl.load(dy + place * cols + col, mask=inside, other=0.0).to(tl.float32)
        tl.atomic_add(dtable + row * cols + col, gradient, mask=inside)


def embedding_backward(token, dy, dtable, *, count, vocab, cols):
    """Add the rows of dy [count, cols] into dtable [vocab, cols]."""
    dtable.zero_()
    add_rows_kernel[(count,)](token, dy, dtable, cols, BLOCK=512, num_warps=4)
