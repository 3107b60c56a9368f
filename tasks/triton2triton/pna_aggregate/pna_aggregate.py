"""Aggregates of neighbours: one program a node, which walks over its edges twice."""

import triton
import triton.language as tl


@triton.jit
def pna_kernel(x, begin, source, y, eps, dim, BLOCK: tl.constexpr):
    node = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < dim
    first = tl.load(begin + node)
    last = tl.load(begin + node + 1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    most = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    least = tl.full((BLOCK,), float("inf"), dtype=tl.float32)
    for edge in range(first, last):
        other = tl.load(source + edge).to(tl.int64)
        value = tl.load(x + other * dim + col, mask=inside, other=0.0).to(tl.float32)
        total += value
        most = tl.maximum(most, value)
        least = tl.minimum(least, value)
    count = tl.maximum(last - first, 1).to(tl.float32)
    mean = total / count
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for edge in range(first, last):
        other = tl.load(source + edge).to(tl.int64)
        value = tl.load(x + other * dim + col, mask=inside, other=0.0).to(tl.float32)
        squares += (value - mean) * (value - mean)
    known = last > first
    line = y + node * 4 * dim + col
    tl.store(line, mean, mask=inside)
    tl.store(line + dim, tl.where(known, most, 0.0), mask=inside)
    tl.store(line + 2 * dim, tl.where(known, least, 0.0), mask=inside)
    tl.store(line + 3 * dim, tl.sqrt(squares / count + eps), mask=inside)


def pna_aggregate(x, begin, source, y, *, eps, nodes, edges, dim):
    """Write y [nodes, 4, dim]."""
    block = triton.next_power_of_2(dim)
    pna_kernel[(nodes,)](x, begin, source, y, eps, dim, BLOCK=block, num_warps=4)
