"""Gradient of cross-entropy: one program a row, walked over in blocks."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_backward_kernel(
    logits, target, lse, dloss, dlogits, vocab, ignore_index, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    chosen = tl.load(target + row)
    total = tl.load(lse + row)
    weight = tl.load(dloss + row)
    kept = chosen != ignore_index
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < vocab
        value = tl.load(logits + row * vocab + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.exp(value - total) - tl.where(col == chosen, 1.0, 0.0)
        result = tl.where(kept, gradient * weight, 0.0)
        tl.store(dlogits + row * vocab + col, result, mask=inside)


def cross_entropy_backward(logits, target, lse, dloss, dlogits, *, ignore_index, rows, vocab):
    """Write the gradient of logits [rows, vocab] into dlogits."""
    cross_entropy_backward_kernel[(rows,)](
        logits, target, lse, dloss, dlogits, vocab, ignore_index, BLOCK=1024, num_warps=4
    )
