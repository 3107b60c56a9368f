"""Products with 4-bit weights: tiles of y, over groups of 128 columns, even and odd ones apart."""

import triton
import triton.language as tl


@triton.jit
def w4a16_kernel(
    x, packed, scale, zero, y, m, n, groups, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    byte = tl.arange(0, 64)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for group in range(groups):
        factor = tl.load(scale + col * groups + group, mask=col < n, other=0.0).to(tl.float32)
        centre = tl.load(zero + col * groups + group, mask=col < n, other=0).to(tl.int32)
        place = (col * groups + group)[None, :] * 64 + byte[:, None]
        pair = tl.load(packed + place, mask=(col < n)[None, :], other=0).to(tl.int32)
        even_weight = ((pair & 15) - centre[None, :]).to(tl.float32) * factor[None, :]
        odd_weight = ((pair >> 4) - centre[None, :]).to(tl.float32) * factor[None, :]
        source = x + (row * groups + group)[:, None] * 128 + 2 * byte[None, :]
        even = tl.load(source, mask=(row < m)[:, None], other=0.0)
        odd = tl.load(source + 1, mask=(row < m)[:, None], other=0.0)
        total += tl.dot(even, even_weight.to(even.dtype), input_precision="ieee")
        total += tl.dot(odd, odd_weight.to(odd.dtype), input_precision="ieee")
    inside = (row < m)[:, None] & (col < n)[None, :]
    tl.store(y + row[:, None] * n + col[None, :], total, mask=inside)


def gemm_w4a16(x, packed, scale, zero, y, *, m, n, groups):
    """Multiply x [m, 128 * groups] by the quantised weights of n rows."""
    rows = 16 if m <= 16 else 32
    w4a16_kernel[(triton.cdiv(m, rows), triton.cdiv(n, 64))](
        x, packed, scale, zero, y, m, n, groups, BLOCK_M=rows, BLOCK_N=64, num_stages=1
    )
