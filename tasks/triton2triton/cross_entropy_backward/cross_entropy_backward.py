"""Cross-entropy and its gradient: one program a row, which is read for its sum and once more."""

import triton
import triton.language as tl


@triton.jit
def capped(logits, at, cap, inside):
    """tanh of logits / cap, and the capped logits, minus infinity outside of the row."""
    value = tl.load(logits + at, mask=inside, other=0.0).to(tl.float32)
    inner = 2.0 * tl.sigmoid(2.0 * value / cap) - 1.0
    return inner, tl.where(inside, cap * inner, float("-inf"))


@triton.jit
def cross_entropy_backward_kernel(
    logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    chosen = tl.load(target + row)
    kept = chosen != ignore_index
    most = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        _, score = capped(logits, row * vocab + col, cap, col < vocab)
        higher = tl.maximum(most, score)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(most - base) + tl.exp(score - base)
        most = higher
    top = tl.max(most, axis=0)
    total = tl.sum(total * tl.exp(most - top), axis=0)
    _, own = capped(logits, row * vocab + chosen, cap, kept)
    tl.store(loss + row, tl.where(kept, tl.log(total) + (top - own), 0.0))
    weight = tl.where(kept, tl.load(dloss + row), 0.0)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inner, score = capped(logits, row * vocab + col, cap, col < vocab)
        gradient = tl.exp(score - top) / total - tl.where(col == chosen, 1.0, 0.0)
        gradient *= weight * (1.0 - inner * inner)
        tl.store(dlogits + row * vocab + col, gradient, mask=col < vocab)


def cross_entropy_backward(logits, target, dloss, loss, dlogits, *, cap, ignore_index, rows, vocab):
    """Write loss [rows], and the gradient of logits [rows, vocab] into dlogits."""
    cross_entropy_backward_kernel[(rows,)](
        logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK=1024, num_warps=4
    )
