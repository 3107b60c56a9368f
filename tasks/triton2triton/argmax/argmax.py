"""The largest element of each row: one program a row, which keeps the best of every lane."""

import triton
import triton.language as tl


@triton.jit
def argmax_kernel(logits, token, peak, vocab, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    place = tl.arange(0, BLOCK)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(logits + row * vocab + col, mask=col < vocab, other=float("-inf"))
        value = value.to(tl.float32)
        place = tl.where(value > best, col, place)
        best = tl.maximum(best, value)
    largest = tl.max(best, axis=0)
    first = tl.min(tl.where(best == largest, place, vocab), axis=0)
    tl.store(token + row, first.to(tl.int64))
    tl.store(peak + row, largest)


def argmax(logits, token, peak, *, rows, vocab):
    """Write column and value of the largest element of each row."""
    argmax_kernel[(rows,)](logits, token, peak, vocab, BLOCK=1024, num_warps=4)
