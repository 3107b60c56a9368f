"""Attention over chosen blocks: one program for a block of queries, which walks over its list."""

import triton
import triton.language as tl


@triton.jit
def sparse_kernel(
    q, k, v, chosen, y, scale, group, blocks, count, dim,
    SIZE: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    block = tl.program_id(1)
    step = tl.arange(0, SIZE)
    column = tl.arange(0, BLOCK_D)
    known = (column < dim)[None, :]
    query = block * SIZE + step
    own = (head * blocks * SIZE + query)[:, None] * dim + column[None, :]
    q_tile = tl.load(q + own, mask=known, other=0.0)
    peak = tl.full((SIZE,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((SIZE,), dtype=tl.float32)
    result = tl.zeros((SIZE, BLOCK_D), dtype=tl.float32)
    for turn in range(count):
        other = tl.load(chosen + (head // group * blocks + block) * count + turn)
        if other >= 0:
            key = other * SIZE + step
            line = (head // group * blocks * SIZE + key)[:, None] * dim + column[None, :]
            k_tile = tl.load(k + line, mask=known, other=0.0)
            v_tile = tl.load(v + line, mask=known, other=0.0)
            score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
            score = tl.where(key[None, :] <= query[:, None], score, float("-inf"))
            higher = tl.maximum(peak, tl.max(score, axis=1))
            weight = tl.exp(score - higher[:, None])
            shrink = tl.exp(peak - higher)
            total = total * shrink + tl.sum(weight, axis=1)
            result = result * shrink[:, None]
            result += tl.dot(weight.to(v_tile.dtype), v_tile, input_precision="ieee")
            peak = higher
    tl.store(y + own, result / total[:, None], mask=known)


def sparse_attention(q, k, v, chosen, y, *, batch, kv_heads, group, blocks, count, dim):
    """Write attention of q [batch, kv_heads * group, 64 * blocks, dim] into y."""
    sparse_kernel[(batch * kv_heads * group, blocks)](
        q, k, v, chosen, y, dim**-0.5, group, blocks, count, dim,
        SIZE=64, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
