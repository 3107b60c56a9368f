"""A gated linear layer: one kernel for both halves into a buffer, and one that joins them."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(
    x, weight, bias, out, rows, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of x . weight^T + bias [rows, n], float32."""
    row = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    column = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        inside = (row < rows)[:, None] & (depth < k)[None, :]
        x_tile = tl.load(x + row[:, None] * k + depth[None, :], mask=inside, other=0.0)
        inside = (column < n)[:, None] & (depth < k)[None, :]
        w_tile = tl.load(weight + column[:, None] * k + depth[None, :], mask=inside, other=0.0)
        total += tl.dot(x_tile, tl.trans(w_tile), input_precision="ieee")
    total += tl.load(bias + column, mask=column < n, other=0.0).to(tl.float32)[None, :]
    inside = (row < rows)[:, None] & (column < n)[None, :]
    tl.store(out + row[:, None] * n + column[None, :], total, mask=inside)


@triton.jit
def gate_kernel(out, y, n, BLOCK: tl.constexpr):
    """One row: its first half, times GELU of its second."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < n
    value = tl.load(out + row * 2 * n + column, mask=inside, other=0.0)
    gate = tl.load(out + row * 2 * n + n + column, mask=inside, other=0.0)
    opened = gate * 0.5 * (1.0 + tl.erf(gate * 0.7071067811865476))
    tl.store(y + row * n + column, value * opened, mask=inside)


def linear_geglu(x, weight, bias, y, *, rows, n, k):
    """Write the gated linear layer of x [rows, k] into y [rows, n]."""
    out = torch.empty((rows, 2 * n), dtype=torch.float32, device=x.device)
    linear_kernel[(triton.cdiv(rows, 64), triton.cdiv(2 * n, 64))](
        x, weight, bias, out, rows, 2 * n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2
    )
    gate_kernel[(rows, triton.cdiv(n, 1024))](out, y, n, BLOCK=1024)
