"""Gradients of adapters: thin products of rows, dx from one of them, and gradients of weights."""

import torch
import triton
import triton.language as tl


@triton.jit
def thin_kernel(
    x, weight, begin, thin, width, rank, of_rank, of_width,
    BLOCK_M: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """thin[r, i] = sum_c x[r, c] * weight[e, i, c], for 32 rows of adapter e; float32."""
    adapter = tl.program_id(0).to(tl.int64)
    first = tl.load(begin + adapter).to(tl.int64) + tl.program_id(1) * BLOCK_M
    last = tl.load(begin + adapter + 1)
    if first < last:
        row = first + tl.arange(0, BLOCK_M)
        part = tl.arange(0, BLOCK_R)
        total = tl.zeros((BLOCK_M, BLOCK_R), dtype=tl.float32)
        for start in range(0, width, BLOCK_K):
            depth = start + tl.arange(0, BLOCK_K)
            inside = (row < last)[:, None] & (depth < width)[None, :]
            x_tile = tl.load(x + row[:, None] * width + depth[None, :], mask=inside, other=0.0)
            inside = (depth < width)[:, None] & (part < rank)[None, :]
            place = adapter * rank * width + depth[:, None] * of_width + part[None, :] * of_rank
            w_tile = tl.load(weight + place, mask=inside, other=0.0)
            total += tl.dot(x_tile, w_tile, input_precision="ieee")
        inside = (row < last)[:, None] & (part < rank)[None, :]
        tl.store(thin + row[:, None] * rank + part[None, :], total, mask=inside)


@triton.jit
def input_kernel(
    thin, down, begin, dx, scale, k, rank,
    BLOCK_M: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of dx, from g."""
    adapter = tl.program_id(0).to(tl.int64)
    first = tl.load(begin + adapter).to(tl.int64) + tl.program_id(1) * BLOCK_M
    last = tl.load(begin + adapter + 1)
    if first < last:
        row = first + tl.arange(0, BLOCK_M)
        part = tl.arange(0, BLOCK_R)
        column = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
        inside = (row < last)[:, None] & (part < rank)[None, :]
        g = tl.load(thin + row[:, None] * rank + part[None, :], mask=inside, other=0.0)
        inside = (part < rank)[:, None] & (column < k)[None, :]
        place = (adapter * rank + part)[:, None] * k + column[None, :]
        w_tile = tl.load(down + place, mask=inside, other=0.0)
        result = tl.dot(g.to(w_tile.dtype), w_tile, input_precision="ieee") * scale
        inside = (row < last)[:, None] & (column < k)[None, :]
        tl.store(dx + row[:, None] * k + column[None, :], result, mask=inside)


@triton.jit
def weight_kernel(
    thin, x, begin, out, scale, width, rank, of_rank, of_width,
    BLOCK_M: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """out[e, i, c] = scale * sum_r thin[r, i] * x[r, c], for some columns of adapter e."""
    adapter = tl.program_id(0).to(tl.int64)
    first = tl.load(begin + adapter)
    last = tl.load(begin + adapter + 1)
    part = tl.arange(0, BLOCK_R)
    column = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_R, BLOCK_K), dtype=tl.float32)
    for start in range(first, last, BLOCK_M):
        row = (start + tl.arange(0, BLOCK_M)).to(tl.int64)
        inside = (row < last)[:, None] & (column < width)[None, :]
        x_tile = tl.load(x + row[:, None] * width + column[None, :], mask=inside, other=0.0)
        inside = (row < last)[:, None] & (part < rank)[None, :]
        t_tile = tl.load(thin + row[:, None] * rank + part[None, :], mask=inside, other=0.0)
        total += tl.dot(tl.trans(t_tile.to(x_tile.dtype)), x_tile, input_precision="ieee")
    inside = (part < rank)[:, None] & (column < width)[None, :]
    place = adapter * rank * width + part[:, None] * of_rank + column[None, :] * of_width
    tl.store(out + place, total * scale, mask=inside)


def lora_backward(x, dy, down, up, begin, dx, ddown, dup, *, scale, rows, adapters, k, n, rank):
    """Write dx [rows, k], ddown [adapters, rank, k] and dup [adapters, n, rank]."""
    h = torch.empty((rows, rank), dtype=torch.float32, device=x.device)
    g = torch.empty((rows, rank), dtype=torch.float32, device=x.device)
    tiles, block = triton.cdiv(rows, 32), max(16, triton.next_power_of_2(rank))
    blocks = {"BLOCK_M": 32, "BLOCK_R": block, "BLOCK_K": 64, "num_stages": 1}
    thin_kernel[(adapters, tiles)](x, down, begin, h, k, rank, k, 1, **blocks)
    thin_kernel[(adapters, tiles)](dy, up, begin, g, n, rank, 1, rank, **blocks)
    input_kernel[(adapters, tiles, triton.cdiv(k, 64))](
        g, down, begin, dx, scale, k, rank, **blocks
    )
    weight_kernel[(adapters, triton.cdiv(k, 64))](
        g, x, begin, ddown, scale, k, rank, k, 1, **blocks
    )
    weight_kernel[(adapters, triton.cdiv(n, 64))](
        h, dy, begin, dup, scale, n, rank, 1, rank, **blocks
    )
