"""Matrix product in two kernels: parts of k into a buffer, then their sums in order."""

import torch
import triton
import triton.language as tl

PARTS = 2


@triton.jit
def parts_kernel(
    a, b, parts, m, n, k, each,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(n, BLOCK_N)
    part = tl.program_id(1)
    row = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    end = tl.minimum(part * each + each, k)
    for start in range(part * each, end, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        a_inside = (row < m)[:, None] & (depth < end)[None, :]
        b_inside = (depth < end)[:, None] & (col < n)[None, :]
        a_tile = tl.load(a + row[:, None] * k + depth[None, :], mask=a_inside, other=0.0)
        b_tile = tl.load(b + depth[:, None] * n + col[None, :], mask=b_inside, other=0.0)
        total += tl.dot(a_tile, b_tile, input_precision="ieee")
    inside = (row < m)[:, None] & (col < n)[None, :]
    at = part.to(tl.int64) * m * n + row[:, None] * n + col[None, :]
    tl.store(parts + at, total, mask=inside)


@triton.jit
def sum_kernel(parts, c, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(parts + part * count + at, mask=at < count, other=0.0)
    tl.store(c + at, total, mask=at < count)


def matmul(a, b, c, *, m, n, k):
    parts = torch.empty((PARTS, m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64), PARTS)
    each = triton.cdiv(k, PARTS)
    parts_kernel[grid](a, b, parts, m, n, k, each, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    sum_kernel[(triton.cdiv(m * n, 1024),)](parts, c, m * n, PARTS=PARTS, BLOCK=1024)
