"""A product of int8 matrices: a 64 x 64 tile a program, summed up in int32, then scaled."""

import triton
import triton.language as tl


@triton.jit
def int8_kernel(
    x, weight, x_scale, w_scale, bias, y, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        x_inside = (row < m)[:, None] & (depth < k)[None, :]
        w_inside = (col < n)[:, None] & (depth < k)[None, :]
        x_tile = tl.load(x + row[:, None] * k + depth[None, :], mask=x_inside, other=0)
        w_tile = tl.load(weight + col[:, None] * k + depth[None, :], mask=w_inside, other=0)
        total += tl.dot(x_tile, tl.trans(w_tile), out_dtype=tl.int32)
    down = tl.load(x_scale + row, mask=row < m, other=0.0)
    across = tl.load(w_scale + col, mask=col < n, other=0.0)
    added = tl.load(bias + col, mask=col < n, other=0.0).to(tl.float32)
    result = total.to(tl.float32) * down[:, None] * across[None, :] + added[None, :]
    inside = (row < m)[:, None] & (col < n)[None, :]
    tl.store(y + row[:, None] * n + col[None, :], result, mask=inside)


def gemm_int8(x, weight, x_scale, w_scale, bias, y, *, m, n, k):
    """Multiply int8 x [m, k] by int8 weight [n, k] and scale the sums."""
    int8_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        x, weight, x_scale, w_scale, bias, y, m, n, k,
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, num_stages=2,
    )  # fmt: skip
