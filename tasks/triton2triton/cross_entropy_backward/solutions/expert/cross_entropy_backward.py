"""Cross-entropy and its gradient: rows that fit into registers are read once.

Others are read twice by so many threads that few programs run at once: what is between the two
reads of a row then fits the cache, from its end on, where the second begins. No sum
overflows, as the cap is 50 at most, so none needs the largest logit.
"""

import triton
import triton.language as tl

WHOLE_ROW = 32768  # 32 elements for each of 1024 threads
WIDEST_TILE = 4096
ELEMENTS_A_WARP = 256


@triton.jit
def capped(logits, at, cap, inside):
    """tanh of logits / cap, and exp of the capped logits: 0 outside of the row."""
    value = tl.load(logits + at, mask=inside, other=0.0).to(tl.float32)
    inner = 2.0 * tl.sigmoid(2.0 * value / cap) - 1.0
    return inner, tl.where(inside, tl.exp(cap * inner), 0.0)


@triton.jit
def write_loss(logits, at, loss, cap, total, kept):
    inner, _ = capped(logits, at, cap, kept)
    tl.store(loss, tl.where(kept, tl.log(total) - cap * inner, 0.0))


@triton.jit
def slope(inner, power, total, col, chosen, weight):
    """The gradient of logits whose capped values have these powers and this sum."""
    gradient = power / total - tl.where(col == chosen.to(tl.int32), 1.0, 0.0)
    return gradient * (weight * (1.0 - inner * inner))


@triton.jit
def whole_kernel(
    logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    chosen = tl.load(target + row)
    kept = chosen != ignore_index
    weight = tl.where(kept, tl.load(dloss + row), 0.0)
    col = tl.arange(0, BLOCK)
    inner, power = capped(logits, row * vocab + col, cap, col < vocab)
    total = tl.sum(power, axis=0)
    write_loss(logits, row * vocab + chosen, loss + row, cap, total, kept)
    gradient = slope(inner, power, total, col, chosen, weight)
    tl.store(dlogits + row * vocab + col, gradient, mask=col < vocab)


@triton.jit
def twice_kernel(
    logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    chosen = tl.load(target + row)
    kept = chosen != ignore_index
    weight = tl.where(kept, tl.load(dloss + row), 0.0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        _, power = capped(logits, row * vocab + col, cap, col < vocab)
        total += power
    total = tl.sum(total, axis=0)
    write_loss(logits, row * vocab + chosen, loss + row, cap, total, kept)
    last = tl.cdiv(vocab, BLOCK) - 1
    for number in range(last + 1):
        col = (last - number) * BLOCK + tl.arange(0, BLOCK)
        inner, power = capped(logits, row * vocab + col, cap, col < vocab)
        gradient = slope(inner, power, total, col, chosen, weight)
        at = dlogits + row * vocab + col
        tl.store(at, gradient, mask=col < vocab, eviction_policy="evict_first")


def cross_entropy_backward(logits, target, dloss, loss, dlogits, *, cap, ignore_index, rows, vocab):
    """Write loss [rows], and the gradient of logits [rows, vocab] into dlogits."""
    block = triton.next_power_of_2(vocab)
    kernel, warps = whole_kernel, min(max(block // ELEMENTS_A_WARP, 1), 32)
    if block > WHOLE_ROW:
        kernel, block, warps = twice_kernel, WIDEST_TILE, 16
    kernel[(rows,)](
        logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK=block, num_warps=warps
    )
