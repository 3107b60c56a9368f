"""Attention over a window: one program for each tile of queries, over the keys that it sees."""

import triton
import triton.language as tl


@triton.jit
def window_kernel(
    q, k, v, sink, y, scale, heads, group, seq, window, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    first = tl.program_id(1) * BLOCK_M
    query = first + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_D)
    own = head * seq * dim
    shared = head // group * seq * dim

    place = query[:, None] * dim + column[None, :]
    inside = (query < seq)[:, None] & (column < dim)[None, :]
    q_tile = tl.load(q + own + place, mask=inside, other=0.0)
    peak = tl.zeros((BLOCK_M,), dtype=tl.float32) + tl.load(sink + head % heads)
    total = tl.full((BLOCK_M,), 1.0, dtype=tl.float32)  # the sink's own part
    result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    begin = tl.maximum(first - window + 1, 0) // BLOCK_N * BLOCK_N
    for start in range(begin, tl.minimum(first + BLOCK_M, seq), BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        there = (key < seq)[:, None] & (column < dim)[None, :]
        line = shared + key[:, None] * dim + column[None, :]
        k_tile = tl.load(k + line, mask=there, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        back = query[:, None] - key[None, :]
        score = tl.where((back >= 0) & (back < window), score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        v_tile = tl.load(v + line, mask=there, other=0.0)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
        peak = higher
    tl.store(y + own + place, result / total[:, None], mask=inside)


def attention_sinks(q, k, v, sink, y, *, batch, kv_heads, group, seq, window, dim):
    """Write windowed attention of q [batch, kv_heads * group, seq, dim] into y."""
    heads = kv_heads * group
    rows = 64 if dim <= 128 else 32
    window_kernel[(batch * heads, triton.cdiv(seq, rows))](
        q, k, v, sink, y, dim**-0.5, heads, group, seq, window, dim,
        BLOCK_M=rows, BLOCK_N=16, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
