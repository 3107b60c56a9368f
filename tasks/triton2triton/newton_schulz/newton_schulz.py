"""A step of Newton-Schulz: three matrix products, each of which adds a multiple of a matrix."""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    a, b, c, result, factor, share, m, n, k, b_down, b_across,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        a_inside = (row < m)[:, None] & (depth < k)[None, :]
        b_inside = (depth < k)[:, None] & (col < n)[None, :]
        a_tile = tl.load(a + row[:, None] * k + depth[None, :], mask=a_inside, other=0.0)
        b_place = depth[:, None] * b_down + col[None, :] * b_across
        b_tile = tl.load(b + b_place, mask=b_inside, other=0.0)
        total += tl.dot(a_tile, b_tile, input_precision="ieee")
    inside = (row < m)[:, None] & (col < n)[None, :]
    place = row[:, None] * n + col[None, :]
    added = tl.load(c + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(result + place, factor * total + share * added, mask=inside)


def multiply(a, b, c, result, factor, share):
    """Write factor * a b + share * c into result; a is contiguous, b need not be."""
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    product_kernel[grid](
        a, b, c, result, factor, share, m, n, k, b.stride(0), b.stride(1),
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2,
    )  # fmt: skip


def newton_schulz(x, y, *, alpha, beta, gamma, m, n):
    """Write alpha x + (beta A + gamma A A) x with A = x x^T into y [m, n]."""
    square = torch.zeros((m, m), dtype=x.dtype, device=x.device)
    polynomial = torch.empty_like(square)
    multiply(x, x.t(), square, square, 1.0, 0.0)
    multiply(square, square, square, polynomial, gamma, beta)
    multiply(polynomial, x, x, y, 1.0, alpha)
