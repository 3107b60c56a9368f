"""Gradients of a graph's aggregation: one program an edge, which adds its row atomically."""

import triton
import triton.language as tl


@triton.jit
def clear_kernel(dx, count, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dx + i, tl.zeros((BLOCK,), dtype=tl.float32), mask=i < count)


@triton.jit
def edge_kernel(x, weight, source, target, dy, dx, dweight, dim, BLOCK: tl.constexpr):
    edge = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < dim
    own = tl.load(source + edge).to(tl.int64) * dim
    other = tl.load(target + edge).to(tl.int64) * dim
    value = tl.load(x + own + col, mask=inside, other=0.0).to(tl.float32)
    gradient = tl.load(dy + other + col, mask=inside, other=0.0).to(tl.float32)
    tl.store(dweight + edge, tl.sum(value * gradient, axis=0))
    tl.atomic_add(dx + own + col, tl.load(weight + edge) * gradient, mask=inside)


def graph_aggregate_backward(x, weight, source, target, dy, dx, dweight, *, nodes, edges, dim):
    """Write dx [nodes, dim] and dweight [edges]."""
    clear_kernel[(triton.cdiv(nodes * dim, 1024),)](dx, nodes * dim, BLOCK=1024, num_warps=4)
    block = triton.next_power_of_2(dim)
    edge_kernel[(edges,)](x, weight, source, target, dy, dx, dweight, dim, BLOCK=block, num_warps=2)
