"""Cross-entropy and its gradient: rows that fit into registers are read once.

Others are read twice by so many threads that few programs run at once: what is between the two
reads of a row then fits the cache, from its end on, where the second begins. No sum
overflows, as the cap is 50 at most, so none needs the largest logit.

What bounds long rows is the unit of exp2 and reciprocals, a sixteenth as fast as the adders: with
r = 1 / (1 + exp(2 * logit / cap)), tanh is 1 - 2 * r, and its slope is 4 * r * (1 - r). Four
elements share one reciprocal, of their product.
"""

import triton
import triton.language as tl

WHOLE_ROW = 32768  # 32 elements for each of 1024 threads
WIDEST_TILE = 4096
WARPS = 16
ELEMENTS_A_WARP = 256
LOG2_E = tl.constexpr(1.4426950408889634)
MOST = tl.constexpr(30.0)  # tanh is 1 there, and the product of four powers still a number
LEAST = tl.constexpr(1e-9)  # more than the share at MOST


@triton.jit
def grown(value, steep):
    """1 + exp(2 * logit / cap), for steep = 2 * log2(e) / cap."""
    return 1.0 + tl.exp2(tl.minimum(value.to(tl.float32) * steep, MOST))


@triton.jit
def quarters(value, BLOCK: tl.constexpr):
    """Split neighbours, which one thread has, among four tensors."""
    even, odd = tl.split(tl.reshape(value, (BLOCK // 4, 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def shares(value, steep, BLOCK: tl.constexpr):
    """Reciprocals of what has grown, of each quarter of the elements."""
    first, second, third, fourth = quarters(grown(value, steep), BLOCK)
    front, back = first * second, third * fourth
    both = 1.0 / (front * back)
    of_front, of_back = both * back, both * front
    return of_front * second, of_front * first, of_back * fourth, of_back * third


@triton.jit
def slope(share, power, factor):
    """What has reached MOST has no slope at all."""
    return power * factor * tl.where(share > LEAST, share - share * share, 0.0)


@triton.jit
def chosen_element(logits, dlogits, loss, at, weight, cap, steep, high, total, kept):
    """The loss, and the gradient of the target's logit over what other threads wrote there."""
    share = 1.0 / grown(tl.load(logits + at, mask=kept, other=0.0), steep)
    capped = cap - 2.0 * cap * share
    tl.store(loss, tl.where(kept, tl.log(total) - capped, 0.0))
    # Likelihoods close to 1: the same power as in the sum, so that the difference is right.
    power = tl.exp2(high - 2.0 * high * share)
    gradient = slope(share, (power - total) / total, 4.0 * weight)
    tl.debug_barrier()
    tl.store(dlogits + at, gradient, mask=kept)


@triton.jit
def whole_kernel(
    logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    chosen = tl.load(target + row)
    kept = chosen != ignore_index
    weight = tl.where(kept, tl.load(dloss + row), 0.0)
    steep, high = 2.0 * LOG2_E / cap, cap * LOG2_E
    col = tl.arange(0, BLOCK)
    value = tl.load(logits + row * vocab + col, mask=col < vocab, other=0.0)
    share = 1.0 / grown(value, steep)
    power = tl.where(col < vocab, tl.exp2(high - 2.0 * high * share), 0.0)
    total = tl.sum(power, axis=0)
    gradient = slope(share, power, 4.0 * weight / total)
    tl.store(dlogits + row * vocab + col, gradient, mask=col < vocab)
    at = row * vocab + chosen
    chosen_element(logits, dlogits, loss + row, at, weight, cap, steep, high, total, kept)


@triton.jit
def edge(begin, head, tail, start, BLOCK: tl.constexpr):
    """Places before and after a row's whole tiles, and which of them are the row's."""
    col = start + tl.arange(0, BLOCK)
    return tl.where(col < head, begin + col, tail + col - head), col


@triton.jit
def twice_kernel(
    logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    chosen = tl.load(target + row)
    kept = chosen != ignore_index
    weight = tl.where(kept, tl.load(dloss + row), 0.0)
    steep, high = 2.0 * LOG2_E / cap, cap * LOG2_E
    # Whole tiles start at a multiple of 16 elements, and need no mask: their loads are wide.
    begin = row * vocab
    first = tl.cdiv(begin, 16) * 16
    head = (first - begin).to(tl.int32)
    tiles = (vocab - head) // BLOCK
    tail = first + tiles * BLOCK
    rest = vocab - tiles * BLOCK
    lane = tl.arange(0, BLOCK)

    of_edge = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rest, BLOCK):
        at, col = edge(begin, head, tail, start, BLOCK)
        value = tl.load(logits + at, mask=col < rest, other=0.0)
        power = tl.exp2(high - 2.0 * high / grown(value, steep))
        of_edge += tl.where(col < rest, power, 0.0)
    sums = tl.zeros((BLOCK // 4,), dtype=tl.float32)
    value = tl.load(logits + first + lane)
    for tile in range(tiles):
        ahead = tl.load(logits + first + tl.minimum(tile + 1, tiles - 1) * BLOCK + lane)
        one, two, three, four = shares(value, steep, BLOCK)
        sums += tl.exp2(high - 2.0 * high * one) + tl.exp2(high - 2.0 * high * two)
        sums += tl.exp2(high - 2.0 * high * three) + tl.exp2(high - 2.0 * high * four)
        value = ahead
    total = tl.sum(sums, axis=0) + tl.sum(of_edge, axis=0)

    factor = 4.0 * weight / total
    value = tl.load(logits + first + (tiles - 1) * BLOCK + lane)
    for number in range(tiles):
        tile = tiles - 1 - number
        ahead = tl.load(logits + first + tl.maximum(tile - 1, 0) * BLOCK + lane)
        one, two, three, four = shares(value, steep, BLOCK)
        one = slope(one, tl.exp2(high - 2.0 * high * one), factor)
        two = slope(two, tl.exp2(high - 2.0 * high * two), factor)
        three = slope(three, tl.exp2(high - 2.0 * high * three), factor)
        four = slope(four, tl.exp2(high - 2.0 * high * four), factor)
        gradient = tl.join(tl.join(one, three), tl.join(two, four))
        gradient = tl.reshape(gradient, (BLOCK,)).to(dlogits.dtype.element_ty)
        at = dlogits + first + tile * BLOCK + lane
        tl.store(at, gradient, eviction_policy="evict_first")
        value = ahead
    for start in range(0, rest, BLOCK):
        at, col = edge(begin, head, tail, start, BLOCK)
        value = tl.load(logits + at, mask=col < rest, other=0.0)
        share = 1.0 / grown(value, steep)
        gradient = slope(share, tl.exp2(high - 2.0 * high * share), factor)
        tl.store(dlogits + at, gradient, mask=col < rest)
    at = begin + chosen
    chosen_element(logits, dlogits, loss + row, at, weight, cap, steep, high, total, kept)


def cross_entropy_backward(logits, target, dloss, loss, dlogits, *, cap, ignore_index, rows, vocab):
    """Write loss [rows], and the gradient of logits [rows, vocab] into dlogits."""
    block = triton.next_power_of_2(vocab)
    kernel, warps = whole_kernel, min(max(block // ELEMENTS_A_WARP, 1), 32)
    if block > WHOLE_ROW:
        kernel, block, warps = twice_kernel, WIDEST_TILE, WARPS
    kernel[(rows,)](
        logits, target, dloss, loss, dlogits, cap, vocab, ignore_index, BLOCK=block, num_warps=warps
    )
