"""Outputs of chunks: a kernel for products of c and b, and one for 32 positions of each head."""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    b, c, both, size, states, BLOCK: tl.constexpr, BLOCK_S: tl.constexpr
):  # fmt: skip
    """A tile of c . b^T within one chunk: [batch * chunks, size, size], float32."""
    chunk = tl.program_id(0).to(tl.int64)  # of all sequences
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, states, BLOCK_S):
        depth = start + tl.arange(0, BLOCK_S)
        inside = (row < size)[:, None] & (depth < states)[None, :]
        place = (chunk * size + row)[:, None] * states + depth[None, :]
        c_tile = tl.load(c + place, mask=inside, other=0.0)
        inside = (column < size)[:, None] & (depth < states)[None, :]
        place = (chunk * size + column)[:, None] * states + depth[None, :]
        b_tile = tl.load(b + place, mask=inside, other=0.0)
        total += tl.dot(c_tile, tl.trans(b_tile), input_precision="ieee")
    place = (chunk * size + row)[:, None] * size + column[None, :]
    tl.store(both + place, total, mask=(row < size)[:, None] & (column < size)[None, :])


@triton.jit
def scan_kernel(
    x, c, both, delta, total, state, d, y, chunks, size, heads, dim, states,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """32 positions of a chunk, one head."""
    chunk = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    first = tl.program_id(2) * BLOCK_T
    time = first + tl.arange(0, BLOCK_T)
    column = tl.arange(0, BLOCK_D)
    here = time < size
    line = ((chunk // chunks * heads + head) * chunks + chunk % chunks) * size
    sums = tl.load(total + line + time, mask=here, other=0.0)
    result = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    for start in range(0, states, BLOCK_S):
        depth = start + tl.arange(0, BLOCK_S)
        inside = here[:, None] & (depth < states)[None, :]
        place = (chunk * size + time)[:, None] * states + depth[None, :]
        c_tile = tl.load(c + place, mask=inside, other=0.0)
        inside = (depth < states)[:, None] & (column < dim)[None, :]
        place = ((chunk * heads + head) * dim + column)[None, :] * states + depth[:, None]
        s_tile = tl.load(state + place, mask=inside, other=0.0)
        result += tl.dot(c_tile, s_tile, input_precision="ieee")
    result *= tl.exp(tl.minimum(sums, 0.0))[:, None]
    for start in range(0, tl.minimum(first + BLOCK_T, size), BLOCK_T):
        other = start + tl.arange(0, BLOCK_T)
        there = other < size
        place = (chunk * size + time)[:, None] * size + other[None, :]
        factor = tl.load(both + place, mask=here[:, None] & there[None, :], other=0.0)
        others = tl.load(total + line + other, mask=there, other=0.0)
        step = tl.load(delta + line + other, mask=there, other=0.0)
        factor *= tl.exp(tl.minimum(sums[:, None] - others[None, :], 0.0)) * step[None, :]
        factor = tl.where(other[None, :] <= time[:, None], factor, 0.0)
        place = ((chunk * size + other) * heads + head)[:, None] * dim + column[None, :]
        x_tile = tl.load(x + place, mask=there[:, None] & (column < dim)[None, :], other=0.0)
        result += tl.dot(factor.to(x_tile.dtype), x_tile, input_precision="ieee")
    inside = here[:, None] & (column < dim)[None, :]
    place = ((chunk * size + time) * heads + head)[:, None] * dim + column[None, :]
    own = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + place, result + tl.load(d + head) * own, mask=inside)


def ssd_chunk_scan(
    x, b, c, delta, total, state, d, y, *, batch, chunks, size, heads, dim, states
):  # fmt: skip
    """Write y [batch, chunks * size, heads, dim]."""
    both = torch.empty((batch * chunks, size, size), dtype=torch.float32, device=x.device)
    tiles = triton.cdiv(size, 32)
    product_kernel[(batch * chunks, tiles, tiles)](
        b, c, both, size, states, BLOCK=32, BLOCK_S=32, num_stages=1
    )
    scan_kernel[(batch * chunks, heads, tiles)](
        x, c, both, delta, total, state, d, y, chunks, size, heads, dim, states,
        BLOCK_T=32, BLOCK_D=triton.next_power_of_2(dim), BLOCK_S=32, num_stages=1,
    )  # fmt: skip
