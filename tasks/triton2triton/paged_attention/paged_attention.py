"""Attention over a paged cache: one program for each head of a cache and sequence."""

import triton
import triton.language as tl


@triton.jit
def paged_kernel(
    q, k_cache, v_cache, table, length, y, scale, kv_heads, group, table_pages, page_size, dim,
    BLOCK_G: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    member = tl.arange(0, BLOCK_G)
    column = tl.arange(0, BLOCK_D)

    line = ((sequence * kv_heads + head) * group + member)[:, None] * dim + column[None, :]
    inside = (member < group)[:, None] & (column < dim)[None, :]
    query = tl.load(q + line, mask=inside, other=0.0)
    peak = tl.full((BLOCK_G,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_G,), dtype=tl.float32)
    result = tl.zeros((BLOCK_G, BLOCK_D), dtype=tl.float32)
    end = tl.load(length + sequence)
    for start in range(0, end, BLOCK_T):
        token = start + tl.arange(0, BLOCK_T)
        known = token < end
        entry = sequence * table_pages + token // page_size
        page = tl.load(table + entry, mask=known, other=0).to(tl.int64)
        row = page * page_size + token % page_size
        row = (row * kv_heads + head)[:, None] * dim + column[None, :]
        there = known[:, None] & (column < dim)[None, :]
        key = tl.load(k_cache + row, mask=there, other=0.0)
        value = tl.load(v_cache + row, mask=there, other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        score = tl.where(known[None, :], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        total = total * shrink + tl.sum(weight, axis=1)
        result = result * shrink[:, None]
        result += tl.dot(weight.to(value.dtype), value, input_precision="ieee")
        peak = higher
    tl.store(y + line, result / total[:, None], mask=inside)


def paged_attention(
    q, k_cache, v_cache, table, length, y,
    *, batch, kv_heads, group, table_pages, page_size, pages, dim,
):  # fmt: skip
    """Write the attention of q [batch, kv_heads * group, dim] over its sequences into y."""
    paged_kernel[(batch, kv_heads)](
        q, k_cache, v_cache, table, length, y, dim**-0.5,
        kv_heads, group, table_pages, page_size, dim,
        BLOCK_G=16, BLOCK_T=32, BLOCK_D=triton.next_power_of_2(dim), num_stages=1,
    )  # fmt: skip
