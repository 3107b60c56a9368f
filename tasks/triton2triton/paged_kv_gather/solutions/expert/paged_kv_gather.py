"""Keys and values of a paged cache in one kernel: a program takes a run of tokens of a head.

A thread takes neighbours of a head's first half that make 16 bytes of the result, and their pairs
of its second half, so that keys are rotated in registers, in one layout for bytes read, angles and
numbers written. Programs that run at once write results that lie one behind another, of keys first
and then of values: memory takes few streams of writes faster than many.
"""

import triton
import triton.language as tl

PAIRS_A_TILE = 1024


@triton.jit
def gather_kernel(
    k_cache, v_cache, k_scale, v_scale, table, length, cos, sin, k, v,
    batch, table_pages, page_size, heads, half,
    IN_A_PAGE: tl.constexpr, TOKENS: tl.constexpr, PACKS: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * TOKENS
    head = tl.program_id(1)
    sequence = tl.program_id(2)
    turned = sequence < batch
    cache, scale, result = k_cache, k_scale, k
    if sequence >= batch:
        sequence -= batch
        cache, scale, result = v_cache, v_scale, v
    token = first + tl.arange(0, TOKENS)
    inside = token < table_pages * page_size
    # The table is read without waiting for the length: entries that nobody needs are never used.
    if IN_A_PAGE:
        start = first // page_size
        page = tl.load(table + sequence * table_pages + start).to(tl.int64)
        row = (page * page_size + (token - start * page_size)) * heads + head
    else:  # runs do not care where pages end, so that no lane idles for odd pages
        page = tl.load(table + sequence * table_pages + token // page_size, mask=inside, other=0)
        row = (page.to(tl.int64) * page_size + token % page_size) * heads + head
    kept = inside & (token < tl.load(length + sequence))
    column = (tl.arange(0, PACKS)[:, None] * EACH + tl.arange(0, EACH)[None, :])[None, :, :]
    written = inside[:, None, None] & (column < half)
    read = kept[:, None, None] & (column < half)
    source = cache + row[:, None, None] * (2 * half) + column
    low = tl.load(source, mask=read, other=0)
    high = tl.load(source + half, mask=read, other=0)
    angle = token[:, None, None] * half + column
    across = tl.load(cos + angle, mask=read & turned, other=1.0)
    along = tl.load(sin + angle, mask=read & turned, other=0.0)
    factor = tl.load(scale + row, mask=kept, other=0.0)[:, None, None]
    low = low.to(tl.float32) * factor
    high = high.to(tl.float32) * factor
    line = (sequence * heads + head).to(tl.int64) * (table_pages * page_size) + token
    place = result + line[:, None, None] * (2 * half) + column
    tl.store(place, tl.where(turned, low * across - high * along, low), mask=written)
    tl.store(place + half, tl.where(turned, high * across + low * along, high), mask=written)


def paged_kv_gather(
    k_cache, v_cache, k_scale, v_scale, table, length, cos, sin, k, v,
    *, batch, table_pages, page_size, pages, heads, half,
):  # fmt: skip
    """Gather the caches' tokens into k and v [batch, heads, context, 2 * half], keys rotated."""
    each = 16 // k.element_size()
    packs = triton.next_power_of_2(triton.cdiv(half, each))
    tokens = max(PAIRS_A_TILE // (packs * each), 1)
    runs = triton.cdiv(table_pages * page_size, tokens)
    gather_kernel[(runs, heads, 2 * batch)](
        k_cache, v_cache, k_scale, v_scale, table, length, cos, sin, k, v,
        batch, table_pages, page_size, heads, half,
        IN_A_PAGE=page_size % tokens == 0, TOKENS=tokens, PACKS=packs, EACH=each, num_warps=4,
    )  # fmt: skip
