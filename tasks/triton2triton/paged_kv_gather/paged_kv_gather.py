"""Keys and values of a paged cache: a kernel for each cache, one program a page and head."""

import triton
import triton.language as tl


@triton.jit
def gather_kernel(
    cache, scale, table, length, result, table_pages, page_size, heads, dim,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    entry = tl.program_id(0)
    head = tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    end = tl.load(length + sequence)
    page = tl.load(table + sequence * table_pages + entry).to(tl.int64)
    column = tl.arange(0, BLOCK_D)
    for start in range(0, page_size, BLOCK_T):
        slot = start + tl.arange(0, BLOCK_T)
        token = entry * page_size + slot
        kept = (slot < page_size) & (token < end)
        row = (page * page_size + slot) * heads + head
        factor = tl.load(scale + row, mask=kept, other=0.0)
        inside = (slot < page_size)[:, None] & (column < dim)[None, :]
        source = cache + row[:, None] * dim + column[None, :]
        value = tl.load(source, mask=inside & kept[:, None], other=0).to(tl.float32)
        line = (sequence * heads + head) * table_pages * page_size + token
        tl.store(result + line[:, None] * dim + column[None, :], value * factor[:, None], inside)


def paged_kv_gather(
    k_cache, v_cache, k_scale, v_scale, table, length, k, v,
    *, batch, table_pages, page_size, pages, heads, dim,
):  # fmt: skip
    """Gather the caches' tokens into k and v [batch, heads, context, dim]."""
    for cache, scale, result in ((k_cache, k_scale, k), (v_cache, v_scale, v)):
        gather_kernel[(table_pages, heads, batch)](
            cache, scale, table, length, result, table_pages, page_size, heads, dim,
            BLOCK_T=16, BLOCK_D=triton.next_power_of_2(dim), num_warps=4,
        )  # fmt: skip
