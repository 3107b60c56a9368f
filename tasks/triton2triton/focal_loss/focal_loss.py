"""Focal loss and its gradient: a kernel for the terms, and another that adds them by anchor."""

import torch
import triton
import triton.language as tl


@triton.jit
def terms_kernel(logits, target, factor, term, dlogits, alpha, total, classes, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    x = tl.load(logits + i, mask=inside, other=0.0).to(tl.float32)
    chosen = tl.load(target + i // classes, mask=inside, other=-1)
    own = chosen == i % classes
    turned = tl.where(own, -x, x)
    likely = tl.sigmoid(turned)
    rest = tl.sigmoid(-turned)
    soft = tl.maximum(turned, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(turned)))
    weight = tl.where(own, alpha, 1.0 - alpha)
    weight = tl.where(chosen < 0, 0.0, weight) * likely * likely
    slope = weight * (2.0 * rest * soft + likely) * tl.load(factor)
    tl.store(term + i, weight * soft, mask=inside)
    tl.store(dlogits + i, tl.where(own, -slope, slope), mask=inside)


@triton.jit
def sum_kernel(term, loss, anchors, classes, BLOCK_A: tl.constexpr, BLOCK_C: tl.constexpr):
    anchor = tl.program_id(0).to(tl.int64) * BLOCK_A + tl.arange(0, BLOCK_A)
    col = tl.arange(0, BLOCK_C)
    inside = (anchor < anchors)[:, None] & (col < classes)[None, :]
    value = tl.load(term + anchor[:, None] * classes + col[None, :], mask=inside, other=0.0)
    tl.store(loss + anchor, tl.sum(value, axis=1), mask=anchor < anchors)


def focal_loss(logits, target, factor, loss, dlogits, *, alpha, anchors, classes):
    """Write loss [anchors] and dlogits [anchors, classes]."""
    total = anchors * classes
    term = torch.empty((anchors, classes), dtype=torch.float32, device=logits.device)
    terms_kernel[(triton.cdiv(total, 1024),)](
        logits, target, factor, term, dlogits, alpha, total, classes, BLOCK=1024, num_warps=4
    )
    sum_kernel[(triton.cdiv(anchors, 16),)](
        term, loss, anchors, classes, BLOCK_A=16, BLOCK_C=triton.next_power_of_2(classes)
    )
