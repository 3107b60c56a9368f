"""Gradients of causal attention in three kernels: what the softmax needs, dk and dv, and dq."""

import torch
import triton
import triton.language as tl


@triton.jit
def load_tile(tensor, base, row, column, seq, dim):
    inside = (row < seq)[:, None] & (column < dim)[None, :]
    return tl.load(tensor + base + row[:, None] * dim + column[None, :], mask=inside, other=0.0)


@triton.jit
def store_tile(tensor, base, row, column, seq, dim, value):
    inside = (row < seq)[:, None] & (column < dim)[None, :]
    tl.store(tensor + base + row[:, None] * dim + column[None, :], value, mask=inside)


@triton.jit
def scores_of(q_tile, k_tile, query, key, scale):
    score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
    return tl.where(key[None, :] <= query[:, None], score, float("-inf"))


@triton.jit
def statistics_kernel(
    q, k, v, dy, total, along, scale, seq, dim, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr
):
    """Logarithms of the sums of exponentials, and dy . y, for one tile of queries."""
    head = tl.program_id(0).to(tl.int64)
    base = head * seq * dim
    first = tl.program_id(1) * BLOCK
    query = first + tl.arange(0, BLOCK)
    column = tl.arange(0, BLOCK_D)
    q_tile = load_tile(q, base, query, column, seq, dim)
    gradient = load_tile(dy, base, query, column, seq, dim)
    peak = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, tl.minimum(first + BLOCK, seq), BLOCK):
        key = start + tl.arange(0, BLOCK)
        k_tile = load_tile(k, base, key, column, seq, dim)
        v_tile = load_tile(v, base, key, column, seq, dim)
        score = scores_of(q_tile, k_tile, query, key, scale)
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        sums = sums * shrink + tl.sum(weight, axis=1)
        dp = tl.dot(gradient, tl.trans(v_tile), input_precision="ieee")
        products = products * shrink + tl.sum(weight * dp, axis=1)
        peak = higher
    tl.store(total + head * seq + query, peak + tl.log(sums), mask=query < seq)
    tl.store(along + head * seq + query, products / sums, mask=query < seq)


@triton.jit
def key_kernel(
    q, k, v, dy, total, along, dk, dv, scale, seq, dim,
    BLOCK: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """dk and dv of one tile of keys, over the queries from there on."""
    head = tl.program_id(0).to(tl.int64)
    base = head * seq * dim
    first = tl.program_id(1) * BLOCK
    key = first + tl.arange(0, BLOCK)
    column = tl.arange(0, BLOCK_D)
    k_tile = load_tile(k, base, key, column, seq, dim)
    v_tile = load_tile(v, base, key, column, seq, dim)
    dk_tile = tl.zeros((BLOCK, BLOCK_D), dtype=tl.float32)
    dv_tile = tl.zeros((BLOCK, BLOCK_D), dtype=tl.float32)
    for start in range(first, seq, BLOCK):
        query = start + tl.arange(0, BLOCK)
        q_tile = load_tile(q, base, query, column, seq, dim)
        gradient = load_tile(dy, base, query, column, seq, dim)
        sums = tl.load(total + head * seq + query, mask=query < seq, other=float("inf"))
        product = tl.load(along + head * seq + query, mask=query < seq, other=0.0)
        p = tl.exp(scores_of(q_tile, k_tile, query, key, scale) - sums[:, None])
        dv_tile += tl.dot(tl.trans(p.to(q_tile.dtype)), gradient, input_precision="ieee")
        dp = tl.dot(gradient, tl.trans(v_tile), input_precision="ieee")
        ds = (p * (dp - product[:, None])).to(q_tile.dtype)
        dk_tile += tl.dot(tl.trans(ds), q_tile, input_precision="ieee")
    store_tile(dk, base, key, column, seq, dim, dk_tile * scale)
    store_tile(dv, base, key, column, seq, dim, dv_tile)


@triton.jit
def query_kernel(
    q, k, v, dy, total, along, dq, scale, seq, dim, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr
):
    """dq of one tile of queries, over the keys up to there."""
    head = tl.program_id(0).to(tl.int64)
    base = head * seq * dim
    first = tl.program_id(1) * BLOCK
    query = first + tl.arange(0, BLOCK)
    column = tl.arange(0, BLOCK_D)
    q_tile = load_tile(q, base, query, column, seq, dim)
    gradient = load_tile(dy, base, query, column, seq, dim)
    sums = tl.load(total + head * seq + query, mask=query < seq, other=float("inf"))
    product = tl.load(along + head * seq + query, mask=query < seq, other=0.0)
    dq_tile = tl.zeros((BLOCK, BLOCK_D), dtype=tl.float32)
    for start in range(0, tl.minimum(first + BLOCK, seq), BLOCK):
        key = start + tl.arange(0, BLOCK)
        k_tile = load_tile(k, base, key, column, seq, dim)
        v_tile = load_tile(v, base, key, column, seq, dim)
        p = tl.exp(scores_of(q_tile, k_tile, query, key, scale) - sums[:, None])
        dp = tl.dot(gradient, tl.trans(v_tile), input_precision="ieee")
        ds = (p * (dp - product[:, None])).to(k_tile.dtype)
        dq_tile += tl.dot(ds, k_tile, input_precision="ieee")
    store_tile(dq, base, query, column, seq, dim, dq_tile * scale)


def attention_backward(q, k, v, dy, dq, dk, dv, *, batch, heads, seq, dim):
    """Write the gradients of causal attention of q, k and v [batch, heads, seq, dim]."""
    scale = dim**-0.5
    block = triton.next_power_of_2(dim)
    total = torch.empty((batch, heads, seq), dtype=torch.float32, device=q.device)
    along = torch.empty_like(total)
    grid = (batch * heads, triton.cdiv(seq, 32))
    statistics_kernel[grid](
        q, k, v, dy, total, along, scale, seq, dim, BLOCK=32, BLOCK_D=block, num_stages=1
    )
    key_kernel[grid](
        q, k, v, dy, total, along, dk, dv, scale, seq, dim, BLOCK=32, BLOCK_D=block, num_stages=1
    )
    query_kernel[grid](
        q, k, v, dy, total, along, dq, scale, seq, dim, BLOCK=32, BLOCK_D=block, num_stages=1
    )
