"""Gradient of cross-entropy over tiles of the whole matrix; ignored rows are not read."""

import triton
import triton.language as tl

WIDEST_TILE = 2048


@triton.jit
def cross_entropy_backward_kernel(
    logits, target, lse, dloss, dlogits, vocab, tiles, ignore_index, BLOCK: tl.constexpr
):
    program = tl.program_id(0)
    row = program // tiles
    chosen = tl.load(target + row)
    total = tl.load(lse + row)
    weight = tl.load(dloss + row)
    kept = chosen != ignore_index
    col = program % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = col < vocab
    at = row.to(tl.int64) * vocab + col
    value = tl.load(logits + at, mask=inside & kept, other=0.0, eviction_policy="evict_first")
    share = tl.exp(value.to(tl.float32) - total)
    gradient = share - tl.where(col == chosen.to(tl.int32), 1.0, 0.0)
    tl.store(dlogits + at, tl.where(kept, gradient * weight, 0.0), mask=inside)


def cross_entropy_backward(logits, target, lse, dloss, dlogits, *, ignore_index, rows, vocab):
    """Write the gradient of logits [rows, vocab] into dlogits."""
    block = min(triton.next_power_of_2(vocab), WIDEST_TILE)
    tiles = triton.cdiv(vocab, block)
    cross_entropy_backward_kernel[(rows * tiles,)](
        logits, target, lse, dloss, dlogits, vocab, tiles, ignore_index,
        BLOCK=block, num_warps=max(block // 256, 1),
    )  # fmt: skip
