"""Gradients of attention in three kernels: products of rows, gradients of keys, and of queries."""

import torch
import triton
import triton.language as tl


@triton.jit
def delta_kernel(y, dy, delta, rows, dim, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr):
    """The products of the rows of y and dy."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, BLOCK_D)
    place = row[:, None] * dim + column[None, :]
    inside = (row < rows)[:, None] & (column < dim)[None, :]
    result = tl.load(y + place, mask=inside, other=0.0).to(tl.float32)
    gradient = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(delta + row, tl.sum(result * gradient, axis=1), mask=row < rows)


@triton.jit
def keys_kernel(
    q, k, v, lse, dy, delta, dk, dv, scale, group, seq, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """dk and dv of a tile of keys, over all queries of the group that see them."""
    own = tl.program_id(0).to(tl.int64)  # of all heads of keys
    first = tl.program_id(1) * BLOCK_N
    key = first + tl.arange(0, BLOCK_N)
    column = tl.arange(0, BLOCK_D)
    there = (key < seq)[:, None] & (column < dim)[None, :]
    line = (own * seq + key)[:, None] * dim + column[None, :]
    k_tile = tl.load(k + line, mask=there, other=0.0)
    v_tile = tl.load(v + line, mask=there, other=0.0)
    dk_tile = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)
    dv_tile = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)
    for head in range(own * group, (own + 1) * group):
        for start in range(first // BLOCK_M * BLOCK_M, seq, BLOCK_M):
            query = start + tl.arange(0, BLOCK_M)
            here = query < seq
            row = head * seq + query
            place = row[:, None] * dim + column[None, :]
            inside = here[:, None] & (column < dim)[None, :]
            q_tile = tl.load(q + place, mask=inside, other=0.0)
            dy_tile = tl.load(dy + place, mask=inside, other=0.0)
            own_lse = tl.load(lse + row, mask=here, other=0.0)
            own_delta = tl.load(delta + row, mask=here, other=0.0)
            score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
            weight = tl.exp(tl.minimum(score - own_lse[:, None], 0.0))
            weight = tl.where((key[None, :] <= query[:, None]) & here[:, None], weight, 0.0)
            slope = tl.dot(dy_tile, tl.trans(v_tile), input_precision="ieee")
            slope = weight * (slope - own_delta[:, None])
            turned = tl.trans(weight.to(dy_tile.dtype))
            dv_tile += tl.dot(turned, dy_tile, input_precision="ieee")
            turned = tl.trans(slope.to(q_tile.dtype))
            dk_tile += tl.dot(turned, q_tile, input_precision="ieee")
    tl.store(dk + line, dk_tile * scale, mask=there)
    tl.store(dv + line, dv_tile, mask=there)


@triton.jit
def queries_kernel(
    q, k, v, lse, dy, delta, dq, scale, group, seq, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """dq of a tile of queries, over the keys that they see."""
    head = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * BLOCK_M
    query = first + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    inside = (query < seq)[:, None] & (column < dim)[None, :]
    row = head * seq + query
    place = row[:, None] * dim + column[None, :]
    q_tile = tl.load(q + place, mask=inside, other=0.0)
    dy_tile = tl.load(dy + place, mask=inside, other=0.0)
    own_lse = tl.load(lse + row, mask=query < seq, other=0.0)
    own_delta = tl.load(delta + row, mask=query < seq, other=0.0)
    dq_tile = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, tl.minimum(first + BLOCK_M, seq), BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        there = (key < seq)[:, None] & (column < dim)[None, :]
        line = (head // group * seq + key)[:, None] * dim + column[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        v_tile = tl.load(v + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        weight = tl.exp(tl.minimum(score - own_lse[:, None], 0.0))
        weight = tl.where(key[None, :] <= query[:, None], weight, 0.0)
        slope = tl.dot(dy_tile, tl.trans(v_tile), input_precision="ieee")
        slope = weight * (slope - own_delta[:, None])
        dq_tile += tl.dot(slope.to(k_tile.dtype), k_tile, input_precision="ieee")
    tl.store(dq + place, dq_tile * scale, mask=inside)


def attention_backward(q, k, v, y, lse, dy, dq, dk, dv, *, batch, kv_heads, group, seq, dim):
    """Write dq [batch, kv_heads * group, seq, dim], dk and dv [batch, kv_heads, seq, dim]."""
    heads, columns = batch * kv_heads, triton.next_power_of_2(dim)
    delta = torch.empty((heads * group, seq), dtype=torch.float32, device=q.device)
    rows = heads * group * seq
    delta_kernel[(triton.cdiv(rows, 32),)](y, dy, delta, rows, dim, BLOCK=32, BLOCK_D=columns)
    keys_kernel[(heads, triton.cdiv(seq, 32))](
        q, k, v, lse, dy, delta, dk, dv, dim**-0.5, group, seq, dim,
        BLOCK_M=32, BLOCK_N=32, BLOCK_D=columns, num_stages=1,
    )  # fmt: skip
    queries_kernel[(heads * group, triton.cdiv(seq, 32))](
        q, k, v, lse, dy, delta, dq, dim**-0.5, group, seq, dim,
        BLOCK_M=32, BLOCK_N=32, BLOCK_D=columns, num_stages=1,
    )  # fmt: skip
