"""Matrix product: tiles by shape, walked in groups that share operands.

Large tiles feed the matrix units, deep ones hide the latency of a thin product; consecutive
programs take a few rows of tiles column by column, so that what they read stays in the cache. What
a mask knows of rows and columns is computed once, outside the loop.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    program = tl.program_id(0)
    first = program // (GROUP * tiles_n) * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    within = program % (GROUP * tiles_n)
    row = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    row_inside = (row < m)[:, None]
    col_inside = (col < n)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        a_at = a + row[:, None] * k + depth[None, :]
        b_at = b + depth[:, None] * n + col[None, :]
        a_tile = tl.load(a_at, mask=row_inside & (depth < k)[None, :], other=0.0)
        b_tile = tl.load(b_at, mask=col_inside & (depth < k)[:, None], other=0.0)
        total = tl.dot(a_tile, b_tile, total, input_precision="ieee")
    tl.store(c + row[:, None] * n + col[None, :], total, mask=row_inside & col_inside)


def tiling(m, n, wide):
    """Choose (BLOCK_M, BLOCK_N, BLOCK_K, warps, stages); `wide` says that operands are float32."""
    if wide:
        return 128, 64, 32, 8, 3
    if m <= 16:
        return 16, 64, 256, 4, 5
    if m <= 64:
        return 64, 64, 128, 4, 5
    if m * n <= 1024 * 1024:
        return 64, 64, 128, 4, 4
    return 128, 256, 64, 8, 3


def matmul(a, b, c, *, m, n, k):
    """Multiply a [m, k] by b [k, n] into c [m, n]."""
    block_m, block_n, block_k, warps, stages = tiling(m, n, a.element_size() == 4)
    if torch.version.hip:
        stages = 2  # the local memory of an AMD compute unit holds one stage of such tiles
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    matmul_kernel[grid](
        a, b, c, m, n, k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=8,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
