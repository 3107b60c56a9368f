"""Matrix product: tiles by shape, walked in groups that share operands, masked only where needed.

Large tiles feed the matrix units; consecutive programs take a few rows of tiles column by column,
so that what they read stays in the cache. Rows and columns beyond the edge wrap around instead of
being masked; only k is masked, and only where it is no multiple of the tile.
"""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    EVEN_K: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    program = tl.program_id(0)
    group = program // (GROUP * tiles_n)
    first = group * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    within = program % (GROUP * tiles_n)
    row = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_at = a + (row % m)[:, None] * k + depth[None, :]
    b_at = b + depth[:, None] * n + (col % n)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        if EVEN_K:
            a_tile = tl.load(a_at)
            b_tile = tl.load(b_at)
        else:
            left = depth < k - start
            a_tile = tl.load(a_at, mask=left[None, :], other=0.0)
            b_tile = tl.load(b_at, mask=left[:, None], other=0.0)
        total = tl.dot(a_tile, b_tile, total, input_precision="ieee")
        a_at += BLOCK_K
        b_at += BLOCK_K * n
    inside = (row < m)[:, None] & (col < n)[None, :]
    tl.store(c + row[:, None] * n + col[None, :], total, mask=inside)


def tiling(m, n, wide):
    """Choose tile sizes, warps and stages; `wide` says that operands have four bytes."""
    if wide:
        return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, "num_warps": 4, "num_stages": 3}
    if m <= 32:
        return {"BLOCK_M": 16 if m <= 16 else 32, "BLOCK_N": 32, "BLOCK_K": 128,
                "num_warps": 4, "num_stages": 4}  # fmt: skip
    if m * n <= 1024 * 1024:
        return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_warps": 4, "num_stages": 4}
    return {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}


def matmul(a, b, c, *, m, n, k):
    """Multiply a [m, k] by b [k, n] into c [m, n]."""
    chosen = tiling(m, n, a.element_size() == 4)
    grid = (triton.cdiv(m, chosen["BLOCK_M"]) * triton.cdiv(n, chosen["BLOCK_N"]),)
    even = k % chosen["BLOCK_K"] == 0
    matmul_kernel[grid](a, b, c, m, n, k, GROUP=8, EVEN_K=even, **chosen)
