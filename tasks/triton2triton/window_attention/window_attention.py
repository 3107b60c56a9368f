"""Attention within windows: one program for 32 queries of a head of a window."""

import triton
import triton.language as tl


@triton.jit
def window_kernel(
    qkv, table, region, y, scale, heads, dim, kinds, size,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    window = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    places = size * size
    query = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
    key = tl.arange(0, BLOCK_N)
    column = tl.arange(0, BLOCK_D)
    known = (column < dim)[None, :]
    q_line = ((window * places + query) * 3 * heads + head)[:, None] * dim + column[None, :]
    q_tile = tl.load(qkv + q_line, mask=(query < places)[:, None] & known, other=0.0)
    k_line = ((window * places + key) * 3 * heads + heads + head)[:, None] * dim + column[None, :]
    k_tile = tl.load(qkv + k_line, mask=(key < places)[:, None] & known, other=0.0)
    v_line = k_line + heads * dim
    v_tile = tl.load(qkv + v_line, mask=(key < places)[:, None] & known, other=0.0)
    score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
    inside = (query < places)[:, None] & (key < places)[None, :]
    down = (query // size)[:, None] - (key // size)[None, :] + size - 1
    right = (query % size)[:, None] - (key % size)[None, :] + size - 1
    entry = (down * (2 * size - 1) + right) * heads + head
    score += tl.load(table + entry, mask=inside, other=0.0).to(tl.float32)
    own = region + window % kinds * places
    q_region = tl.load(own + query, mask=query < places, other=0)
    k_region = tl.load(own + key, mask=key < places, other=0)
    seen = (key < places)[None, :] & (q_region[:, None] == k_region[None, :])
    seen |= (query >= places)[:, None]
    score = tl.where(seen, score, float("-inf"))
    weight = tl.exp(score - tl.max(score, axis=1)[:, None])
    total = tl.sum(weight, axis=1)
    result = tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee") / total[:, None]
    line = ((window * places + query) * heads + head)[:, None] * dim + column[None, :]
    tl.store(y + line, result, mask=(query < places)[:, None] & known)


def window_attention(qkv, table, region, y, *, windows, heads, size, dim, kinds):
    """Write the attention within windows into y [windows, size * size, heads, dim]."""
    places = size * size
    window_kernel[(windows, heads, triton.cdiv(places, 32))](
        qkv, table, region, y, dim**-0.5, heads, dim, kinds, size,
        BLOCK_M=32, BLOCK_N=max(16, triton.next_power_of_2(places)),
        BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
