"""Keys and values of a paged cache: each cache gathered a page and head a program, keys rotated."""

import torch
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


@triton.jit
def rotate_kernel(
    plain, cos, sin, k, context, heads, half, BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr
):  # fmt: skip
    """Keys of some tokens of a head, rotated by their positions."""
    token = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    head = tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    column = tl.arange(0, BLOCK_H)
    inside = (token < context)[:, None] & (column < half)[None, :]
    angle = token[:, None] * half + column[None, :]
    across = tl.load(cos + angle, mask=inside, other=0.0)
    along = tl.load(sin + angle, mask=inside, other=0.0)
    line = (sequence * heads + head) * context + token
    place = line[:, None] * 2 * half + column[None, :]
    low = tl.load(plain + place, mask=inside, other=0.0)
    high = tl.load(plain + place + half, mask=inside, other=0.0)
    tl.store(k + place, low * across - high * along, mask=inside)
    tl.store(k + place + half, high * across + low * along, mask=inside)


def paged_kv_gather(
    k_cache, v_cache, k_scale, v_scale, table, length, cos, sin, k, v,
    *, batch, table_pages, page_size, pages, heads, half,
):  # fmt: skip
    """Gather the caches' tokens into k and v [batch, heads, context, 2 * half], keys rotated."""
    dim = 2 * half
    context = table_pages * page_size
    # Keys are rounded once, after their rotation.
    plain = torch.empty((batch, heads, context, dim), dtype=torch.float32, device=k.device)
    for cache, scale, result in ((k_cache, k_scale, plain), (v_cache, v_scale, v)):
        gather_kernel[(table_pages, heads, batch)](
            cache, scale, table, length, result, table_pages, page_size, heads, dim,
            BLOCK_T=16, BLOCK_D=triton.next_power_of_2(dim), num_warps=4,
        )  # fmt: skip
    rotate_kernel[(triton.cdiv(context, 16), heads, batch)](
        plain, cos, sin, k, context, heads, half,
        BLOCK_T=16, BLOCK_H=triton.next_power_of_2(half), num_warps=4,
    )  # fmt: skip
