"""A linear layer into a float32 buffer, then bias, GELU and rounding."""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    x, weight, product, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        x_inside = (row < m)[:, None] & (depth < k)[None, :]
        w_inside = (column < n)[:, None] & (depth < k)[None, :]
        x_tile = tl.load(x + row[:, None] * k + depth[None, :], mask=x_inside, other=0.0)
        w_tile = tl.load(weight + column[:, None] * k + depth[None, :], mask=w_inside, other=0.0)
        total += tl.dot(x_tile, tl.trans(w_tile), input_precision="ieee")
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(product + row[:, None] * n + column[None, :], total, mask=inside)


@triton.jit
def gelu_kernel(product, bias, u, y, n, total, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    value = tl.load(product + i, mask=inside, other=0.0)
    value += tl.load(bias + i % n, mask=inside, other=0.0).to(tl.float32)
    tl.store(u + i, value, mask=inside)
    tl.store(y + i, 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476)), mask=inside)


def linear_gelu(x, weight, bias, u, y, *, m, n, k):
    """Write u and y [m, n]."""
    product = torch.empty((m, n), dtype=torch.float32, device=x.device)
    product_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        x, weight, product, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2
    )
    gelu_kernel[(triton.cdiv(m * n, 1024),)](product, bias, u, y, n, m * n, BLOCK=1024)
