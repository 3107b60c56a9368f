"""The feed-forward block in two kernels: the hidden units into a buffer, then the output."""

import torch
import triton
import triton.language as tl


@triton.jit
def hidden_kernel(
    x, gate, up, h, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    g = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    u = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        x_inside = (row < m)[:, None] & (depth < k)[None, :]
        w_inside = (column < n)[:, None] & (depth < k)[None, :]
        place = column[:, None] * k + depth[None, :]
        x_tile = tl.load(x + row[:, None] * k + depth[None, :], mask=x_inside, other=0.0)
        gate_tile = tl.load(gate + place, mask=w_inside, other=0.0)
        up_tile = tl.load(up + place, mask=w_inside, other=0.0)
        g += tl.dot(x_tile, tl.trans(gate_tile), input_precision="ieee")
        u += tl.dot(x_tile, tl.trans(up_tile), input_precision="ieee")
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(h + row[:, None] * n + column[None, :], g * tl.sigmoid(g) * u, mask=inside)


@triton.jit
def output_kernel(
    h, down, y, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        h_inside = (row < m)[:, None] & (depth < k)[None, :]
        w_inside = (column < n)[:, None] & (depth < k)[None, :]
        h_tile = tl.load(h + row[:, None] * k + depth[None, :], mask=h_inside, other=0.0)
        w_tile = tl.load(down + column[:, None] * k + depth[None, :], mask=w_inside, other=0.0)
        total += tl.dot(h_tile, tl.trans(w_tile), input_precision="ieee")
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], total, mask=inside)


def fused_mlp(x, gate, up, down, y, *, tokens, width, hidden):
    """Write the block's output y [tokens, width]."""
    h = torch.empty((tokens, hidden), dtype=x.dtype, device=x.device)
    rows = 16 if tokens <= 16 else 64
    hidden_kernel[(triton.cdiv(tokens, rows), triton.cdiv(hidden, 64))](
        x, gate, up, h, tokens, hidden, width, BLOCK_M=rows, BLOCK_N=64, BLOCK_K=32, num_stages=2
    )
    output_kernel[(triton.cdiv(tokens, rows), triton.cdiv(width, 64))](
        h, down, y, tokens, width, hidden, BLOCK_M=rows, BLOCK_N=64, BLOCK_K=32, num_stages=2
    )
