"""Softmax over a node's edges: one program a node, which walks over its edges three times."""

import triton
import triton.language as tl


@triton.jit
def segment_softmax_kernel(x, begin, y, lse, heads, BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr):
    node = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, BLOCK_H)
    first = tl.load(begin + node)
    last = tl.load(begin + node + 1)
    peak = tl.full((BLOCK_E, BLOCK_H), float("-inf"), dtype=tl.float32)
    for start in range(first, last, BLOCK_E):
        edge = (start + tl.arange(0, BLOCK_E)).to(tl.int64)
        inside = (edge < last)[:, None] & (head < heads)[None, :]
        place = edge[:, None] * heads + head[None, :]
        value = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
        peak = tl.maximum(peak, value)
    largest = tl.max(peak, axis=0)
    largest = tl.where(largest > float("-inf"), largest, 0.0)
    total = tl.zeros((BLOCK_E, BLOCK_H), dtype=tl.float32)
    for start in range(first, last, BLOCK_E):
        edge = (start + tl.arange(0, BLOCK_E)).to(tl.int64)
        inside = (edge < last)[:, None] & (head < heads)[None, :]
        place = edge[:, None] * heads + head[None, :]
        value = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
        total += tl.exp(value - largest[None, :])
    whole = tl.sum(total, axis=0)
    whole = tl.where(whole > 0.0, whole, 1.0)
    tl.store(lse + node * heads + head, largest + tl.log(whole), mask=head < heads)
    for start in range(first, last, BLOCK_E):
        edge = (start + tl.arange(0, BLOCK_E)).to(tl.int64)
        inside = (edge < last)[:, None] & (head < heads)[None, :]
        place = edge[:, None] * heads + head[None, :]
        value = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
        tl.store(y + place, tl.exp(value - largest[None, :]) / whole[None, :], mask=inside)


def segment_softmax(x, begin, y, lse, *, edges, nodes, heads):
    """Write y [edges, heads] and lse [nodes, heads]."""
    segment_softmax_kernel[(nodes,)](
        x, begin, y, lse, heads, BLOCK_E=32, BLOCK_H=triton.next_power_of_2(heads), num_warps=1
    )
