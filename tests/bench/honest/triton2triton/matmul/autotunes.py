"""Matrix product whose tiles Triton chooses by timing them."""

import triton
import triton.language as tl

TILES = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 32}, num_warps=4, num_stages=2)
    for m, n in ((32, 32), (64, 32), (64, 64))
]


@triton.autotune(configs=TILES, key=["m", "n", "k"])
@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    tiles_n = tl.cdiv(n, BLOCK_N)
    row = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
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
    def grid(meta):
        return (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, c, m, n, k)
