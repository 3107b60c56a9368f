"""Attention of a drafted tree: one program for 32 nodes of a head, first context, then tree."""

import triton
import triton.language as tl


@triton.jit
def tree_kernel(
    q, k, v, k_tree, v_tree, length, seen, y, scale, heads, group, seq, nodes, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    sequence = head // heads
    node = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    place = (head * nodes + node)[:, None] * dim + column[None, :]
    inside = (node < nodes)[:, None] & (column < dim)[None, :]
    q_tile = tl.load(q + place, mask=inside, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end = tl.load(length + sequence)
    for start in range(0, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        there = (key < end)[:, None] & (column < dim)[None, :]
        line = (head // group * seq + key)[:, None] * dim + column[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        score = tl.where((key < end)[None, :], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        v_tile = tl.load(v + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    for start in range(0, nodes, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        there = (key < nodes)[:, None] & (column < dim)[None, :]
        line = (head // group * nodes + key)[:, None] * dim + column[None, :]
        k_tile = tl.load(k_tree + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        bit = (sequence * nodes + node)[:, None] * nodes + key[None, :]
        both = (node < nodes)[:, None] & (key < nodes)[None, :]
        score = tl.where(tl.load(seen + bit, mask=both, other=0) != 0, score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        v_tile = tl.load(v_tree + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    tl.store(y + place, result / total[:, None], mask=inside)


def tree_attention(
    q, k, v, k_tree, v_tree, length, seen, y, *, batch, kv_heads, group, seq, nodes, dim
):
    """Write attention of q [batch, kv_heads * group, nodes, dim] over contexts and trees into y."""
    heads = kv_heads * group
    tree_kernel[(batch * heads, triton.cdiv(nodes, 32))](
        q, k, v, k_tree, v_tree, length, seen, y, dim**-0.5, heads, group, seq, nodes, dim,
        BLOCK_M=32, BLOCK_N=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
