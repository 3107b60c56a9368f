"""Keys and values of a paged cache in one kernel: a program takes a run of tokens of a head.

Runs do not care where pages end, so that no lane idles for odd pages. A thread takes neighbours
that make 16 bytes of the result, in one layout for bytes read and numbers written.
"""

import triton
import triton.language as tl

ELEMENTS_A_TILE = 2048


@triton.jit
def gather_kernel(
    k_cache, v_cache, k_scale, v_scale, table, length, k, v,
    table_pages, page_size, heads, dim, runs,
    TOKENS: tl.constexpr, PACKS: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    # The heads of a run are neighbours, as in the cache, and share its sectors of scales.
    program = tl.program_id(0)
    head = program % heads
    sequence = program // heads // runs
    token = program // heads % runs * TOKENS + tl.arange(0, TOKENS)
    inside = token < table_pages * page_size
    # The table is read without waiting for the length: entries that nobody needs are never used.
    page = tl.load(table + sequence * table_pages + token // page_size, mask=inside, other=0)
    kept = inside & (token < tl.load(length + sequence))
    row = (page.to(tl.int64) * page_size + token % page_size) * heads + head
    column = tl.arange(0, PACKS)[:, None] * EACH + tl.arange(0, EACH)[None, :]
    within = (column < dim)[None, :, :]
    source = row[:, None, None] * dim + column[None, :, :]
    read = kept[:, None, None] & within
    key = tl.load(k_cache + source, mask=read, other=0)
    value = tl.load(v_cache + source, mask=read, other=0)
    of_key = tl.load(k_scale + row, mask=kept, other=0.0)[:, None, None]
    of_value = tl.load(v_scale + row, mask=kept, other=0.0)[:, None, None]
    line = (sequence * heads + head).to(tl.int64) * (table_pages * page_size) + token
    place = line[:, None, None] * dim + column[None, :, :]
    written = inside[:, None, None] & within
    tl.store(k + place, key.to(tl.float32) * of_key, mask=written)
    tl.store(v + place, value.to(tl.float32) * of_value, mask=written)


def paged_kv_gather(
    k_cache, v_cache, k_scale, v_scale, table, length, k, v,
    *, batch, table_pages, page_size, pages, heads, dim,
):  # fmt: skip
    """Gather the caches' tokens into k and v [batch, heads, context, dim]."""
    each = 16 // k.element_size()
    packs = triton.next_power_of_2(triton.cdiv(dim, each))
    tokens = ELEMENTS_A_TILE // (packs * each)
    runs = triton.cdiv(table_pages * page_size, tokens)
    gather_kernel[(batch * runs * heads,)](
        k_cache, v_cache, k_scale, v_scale, table, length, k, v,
        table_pages, page_size, heads, dim, runs,
        TOKENS=tokens, PACKS=packs, EACH=each, num_warps=4,
    )  # fmt: skip
