"""Products of E4M3 codes: bytes become bfloat16 by shifts, and blocks of 128 columns are scaled."""

import triton
import triton.language as tl


@triton.jit
def decoded(byte):
    """The values of E4M3 codes, which bfloat16 holds exactly."""
    code = byte.to(tl.int32)
    bits = ((code & 128) << 24) | ((code & 127) << 20)
    return (bits.to(tl.float32, bitcast=True) * 1.329227995784916e36).to(tl.bfloat16)


@triton.jit
def fp8_kernel(
    x, x_scale, weight, weight_scale, y, m, n, depth,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for block in range(depth):
        part = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, 128, BLOCK_K):
            c = block * 128 + start + tl.arange(0, BLOCK_K)
            x_place = row[:, None] * (depth * 128) + c[None, :]
            x_tile = tl.load(x + x_place, mask=(row < m)[:, None], other=0)
            w_tile = tl.load(weight + col[None, :] * (depth * 128) + c[:, None])
            part += tl.dot(decoded(x_tile), decoded(w_tile))
        of_row = tl.load(x_scale + row * depth + block, mask=row < m, other=0.0)
        of_block = tl.load(weight_scale + col // 128 * depth + block)
        total += part * of_row[:, None] * of_block[None, :]
    place = row[:, None] * (n * 128) + col[None, :]
    tl.store(y + place, total, mask=(row < m)[:, None])


def gemm_fp8_block(x, x_scale, weight, weight_scale, y, *, m, n, depth):
    """Write the scaled product of codes into y [m, 128 * n]."""
    rows = 16 if m <= 16 else 64
    fp8_kernel[(triton.cdiv(m, rows), 2 * n)](
        x, x_scale, weight, weight_scale, y, m, n, depth,
        BLOCK_M=rows, BLOCK_N=64, BLOCK_K=64, num_stages=1,
    )  # fmt: skip
