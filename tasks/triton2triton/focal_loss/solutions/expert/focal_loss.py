"""Focal loss and its gradient in one pass: anchors' sums stay in registers.

A program walks over the classes of some anchors in wide tiles, whose rows are long pieces of
memory, and a narrow one for the rest, which wastes few lanes. Arithmetic takes as long as memory:
the logarithm is a polynomial of what gives the likelihood, too.
"""

import math

import triton
import triton.language as tl


@triton.jit
def log_of(y):
    """log(1 + x) for x in 0 .. 1; y is x / sqrt(1 + x), twice the sinh of half of it."""
    square = y * y
    value = 0.0046590943820774555 - 0.0005960693233646452 * square
    value = value * square - 0.04166434705257416
    return (value * square + 1.0) * y


@triton.jit
def terms(x, own, usual, alpha, outer):
    """Terms of the loss, and the gradient."""
    turned = tl.where(own, -x, x)
    # With e = exp(-|turned|), the sigmoid of |turned| is 1 / (1 + e).
    small = tl.exp2(tl.abs(turned) * -1.4426950408889634)
    root = tl.rsqrt(1.0 + small)
    reduced = small * root
    logarithm = log_of(reduced)
    likely = tl.where(turned > 0.0, root, reduced) * root
    soft = tl.maximum(turned, 0.0) + logarithm
    weight = tl.where(own, alpha, usual) * likely * likely
    slope = weight * outer * (2.0 * (1.0 - likely) * soft + likely)
    return weight * soft, tl.where(own, -slope, slope)


@triton.jit
def tile(logits, start, known, col, classes):
    """Logits of a tile. Minus infinity has no loss."""
    inside = known & (col < classes)
    return tl.load(
        logits + start + col, mask=inside, other=float("-inf"), eviction_policy="evict_first"
    )


@triton.jit
def focal_kernel(
    logits, target, factor, loss, dlogits, alpha, anchors, shared, UNIT: tl.constexpr,
    ANCHORS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    # Classes that come in pairs or fours are read in pairs or fours.
    classes = shared * UNIT
    anchor = tl.program_id(0) * ANCHORS + tl.arange(0, ANCHORS)
    known = anchor < anchors
    # A program's own places fit 32 bits.
    logits += tl.program_id(0).to(tl.int64) * (ANCHORS * classes)
    dlogits += tl.program_id(0).to(tl.int64) * (ANCHORS * classes)
    start = tl.arange(0, ANCHORS)[:, None] * classes
    # All reads of up to two wide tiles and the rest are under way before the first is used.
    if WIDE > 0:
        ahead = tile(logits, start, known[:, None], tl.arange(0, BLOCK)[None, :], classes)
    if REST > 0:
        last = WIDE * BLOCK + tl.arange(0, REST)[None, :]
        x_last = tile(logits, start, known[:, None], last, classes).to(tl.float32)
    chosen = tl.load(target + anchor, mask=known, other=-1)
    usual = tl.where(chosen < 0, 0.0, 1.0 - alpha)[:, None]
    # No object is no column, not even one past the end.
    chosen = tl.where(chosen < classes, chosen, -1)[:, None]
    outer = tl.load(factor)
    total = tl.zeros((ANCHORS,), dtype=tl.float32)
    if WIDE > 0:
        sums = tl.zeros((ANCHORS, BLOCK), dtype=tl.float32)
        for number in range(WIDE):
            col = number * BLOCK + tl.arange(0, BLOCK)[None, :]
            x = ahead.to(tl.float32)
            if WIDE > 1:
                ahead = tile(
                    logits, start, known[:, None] & (number + 1 < WIDE), col + BLOCK, classes
                )
            term, slope = terms(x, chosen == col, usual, alpha, outer)
            sums += term
            inside = known[:, None] & (col < classes)
            tl.store(dlogits + start + col, slope, mask=inside)
        total += tl.sum(sums, axis=1)
    if REST > 0:
        term, slope = terms(x_last, chosen == last, usual, alpha, outer)
        total += tl.sum(term, axis=1)
        tl.store(dlogits + start + last, slope, mask=known[:, None] & (last < classes))
    tl.store(loss + anchor, total, mask=known)


def focal_loss(logits, target, factor, loss, dlogits, *, alpha, anchors, classes):
    """Write loss [anchors] and dlogits [anchors, classes]."""
    block = min(triton.next_power_of_2(classes), 64)
    wide = classes // block
    rest = classes - wide * block
    if 4 * rest > 3 * block:  # as good as a wide one
        wide, rest = wide + 1, 0
    rest = triton.next_power_of_2(rest) if rest else 0
    unit = math.gcd(classes, 8)
    # Elements of a tile, and of a lane: of wide elements, few programs would fit.
    elements, share = (1024, 4) if logits.element_size() == 4 else (2048, 16)
    together = min(elements // block, triton.next_power_of_2(anchors))
    focal_kernel[(triton.cdiv(anchors, together),)](
        logits, target, factor, loss, dlogits, alpha, anchors, classes // unit, UNIT=unit,
        ANCHORS=together, BLOCK=block, WIDE=wide, REST=rest,
        num_warps=max(together * block // share // 32, 1),
    )  # fmt: skip
