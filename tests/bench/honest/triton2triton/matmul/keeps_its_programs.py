"""Matrix product by a few programs that stay, and take one tile after another."""

import triton
import triton.language as tl

PROGRAMS = 8


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    tiles_n = tl.cdiv(n, BLOCK_N)
    tiles = tl.cdiv(m, BLOCK_M) * tiles_n
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        row = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
        col = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            depth = start + tl.arange(0, BLOCK_K)
            a_inside = (row < m)[:, None] & (depth < k)[None, :]
            b_inside = (depth < k)[:, None] & (col < n)[None, :]
            a_tile = tl.load(a + row[:, None] * k + depth[None, :], mask=a_inside, other=0.0)
            b_tile = tl.load(b + depth[:, None] * n + col[None, :], mask=b_inside, other=0.0)
            total += tl.dot(a_tile, b_tile, input_precision="ieee")
        inside = (row < m)[:, None] & (col < n)[None, :]
        tl.store(c + row[:, None] * n + col[None, :], total, mask=inside)


def matmul(a, b, c, *, m, n, k):
    grid = (min(PROGRAMS, triton.cdiv(m, 64) * triton.cdiv(n, 64)),)
    matmul_kernel[grid](a, b, c, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
