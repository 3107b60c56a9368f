"""Products of experts: one program for 64 columns of an expert, which walks over its rows."""

import triton
import triton.language as tl


@triton.jit
def grouped_kernel(
    x, weight, begin, y, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    expert = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.load(begin + expert).to(tl.int64)
    last = tl.load(begin + expert + 1)
    for start in range(first, last, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for deep in range(0, k, BLOCK_K):
            depth = deep + tl.arange(0, BLOCK_K)
            x_inside = (row < last)[:, None] & (depth < k)[None, :]
            w_inside = (column < n)[:, None] & (depth < k)[None, :]
            x_tile = tl.load(x + row[:, None] * k + depth[None, :], mask=x_inside, other=0.0)
            w_place = (expert * n + column)[:, None] * k + depth[None, :]
            w_tile = tl.load(weight + w_place, mask=w_inside, other=0.0)
            total += tl.dot(x_tile, tl.trans(w_tile), input_precision="ieee")
        inside = (row < last)[:, None] & (column < n)[None, :]
        tl.store(y + row[:, None] * n + column[None, :], total, mask=inside)


def moe_grouped_gemm(x, weight, begin, y, *, rows, experts, n, k):
    """Multiply the rows of each expert by its weight [n, k]."""
    grouped_kernel[(experts, triton.cdiv(n, 64))](
        x, weight, begin, y, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=2
    )
