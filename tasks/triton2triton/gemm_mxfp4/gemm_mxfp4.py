"""Products with MXFP4 weights: tiles of y, over groups of 32 columns, even and odd ones apart."""

import triton
import triton.language as tl


@triton.jit
def decoded(code, scale):
    """The values of 4-bit codes, times a power of two."""
    exponent = (code >> 1) & 3
    half = (code & 1).to(tl.float32)
    small = 0.5 * half
    large = (1.0 + 0.5 * half) * tl.exp2((exponent - 1).to(tl.float32))
    size = tl.where(exponent == 0, small, large)
    return tl.where(code >= 8, -size, size) * scale


@triton.jit
def mxfp4_kernel(
    x, packed, power, bias, y, m, n, groups, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    byte = tl.arange(0, 16)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for group in range(groups):
        shift = tl.load(power + col * groups + group, mask=col < n, other=127).to(tl.float32)
        scale = tl.exp2(shift - 127.0)[None, :]
        place = (col * groups + group)[None, :] * 16 + byte[:, None]
        pair = tl.load(packed + place, mask=(col < n)[None, :], other=0).to(tl.int32)
        source = x + (row * groups + group)[:, None] * 32 + 2 * byte[None, :]
        even = tl.load(source, mask=(row < m)[:, None], other=0.0)
        odd = tl.load(source + 1, mask=(row < m)[:, None], other=0.0)
        low = decoded(pair & 15, scale).to(even.dtype)
        high = decoded(pair >> 4, scale).to(even.dtype)
        total += tl.dot(even, low, input_precision="ieee")
        total += tl.dot(odd, high, input_precision="ieee")
    total += tl.load(bias + col, mask=col < n, other=0.0).to(tl.float32)[None, :]
    inside = (row < m)[:, None] & (col < n)[None, :]
    tl.store(y + row[:, None] * n + col[None, :], total, mask=inside)


def gemm_mxfp4(x, packed, power, bias, y, *, m, n, groups):
    """Multiply x [m, 32 * groups] by the quantised weights of n rows, and add the bias."""
    rows = 16 if m <= 16 else 32
    mxfp4_kernel[(triton.cdiv(m, rows), triton.cdiv(n, 64))](
        x, packed, power, bias, y, m, n, groups, BLOCK_M=rows, BLOCK_N=64, num_stages=1
    )
