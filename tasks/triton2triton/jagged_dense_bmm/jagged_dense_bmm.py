"""Products of jagged rows: tiles for the longest sequence, of which shorter ones have no use."""

import triton
import triton.language as tl


@triton.jit
def jagged_kernel(
    x, begin, dense, bias, y, k, n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    first = tl.load(begin + sequence).to(tl.int64)
    last = tl.load(begin + sequence + 1)
    row = first + tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        x_inside = (row < last)[:, None] & (depth < k)[None, :]
        d_inside = (depth < k)[:, None] & (column < n)[None, :]
        x_tile = tl.load(x + row[:, None] * k + depth[None, :], mask=x_inside, other=0.0)
        d_place = (sequence * k + depth)[:, None] * n + column[None, :]
        d_tile = tl.load(dense + d_place, mask=d_inside, other=0.0)
        total += tl.dot(x_tile, d_tile, input_precision="ieee")
    shift = tl.load(bias + sequence * n + column, mask=column < n, other=0.0).to(tl.float32)
    inside = (row < last)[:, None] & (column < n)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], total + shift[None, :], mask=inside)


def jagged_dense_bmm(x, begin, dense, bias, y, *, rows, batch, longest, k, n):
    """Write the products of all sequences into y [rows, n]."""
    jagged_kernel[(batch, triton.cdiv(longest, 32), triton.cdiv(n, 32))](
        x, begin, dense, bias, y, k, n, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, num_stages=2
    )
