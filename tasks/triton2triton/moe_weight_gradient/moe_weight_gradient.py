"""Gradients of experts' weights: one program a tile of an expert, which walks over its rows."""

import triton
import triton.language as tl


@triton.jit
def gradient_kernel(
    x, dy, begin, dweight, n, k,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_R: tl.constexpr,
):  # fmt: skip
    expert = tl.program_id(0).to(tl.int64)
    line = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    first = tl.load(begin + expert)
    last = tl.load(begin + expert + 1)
    total = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    for start in range(first, last, BLOCK_R):
        row = (start + tl.arange(0, BLOCK_R)).to(tl.int64)
        here = row < last
        y_inside = here[:, None] & (line < n)[None, :]
        x_inside = here[:, None] & (column < k)[None, :]
        y_tile = tl.load(dy + row[:, None] * n + line[None, :], mask=y_inside, other=0.0)
        x_tile = tl.load(x + row[:, None] * k + column[None, :], mask=x_inside, other=0.0)
        total += tl.dot(tl.trans(y_tile), x_tile, input_precision="ieee")
    inside = (line < n)[:, None] & (column < k)[None, :]
    place = (expert * n + line)[:, None] * k + column[None, :]
    tl.store(dweight + place, total, mask=inside)


def moe_weight_gradient(x, dy, begin, dweight, *, rows, experts, n, k):
    """Write dweight [experts, n, k]."""
    gradient_kernel[(experts, triton.cdiv(n, 64), triton.cdiv(k, 64))](
        x, dy, begin, dweight, n, k, BLOCK_N=64, BLOCK_K=64, BLOCK_R=32, num_stages=2
    )
