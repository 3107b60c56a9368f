"""Gradients of a linear layer: a product over the tokens, and sums of columns."""

import triton
import triton.language as tl


@triton.jit
def weight_kernel(
    x, dy, before, dweight, tokens, n, k,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.program_id(1).to(tl.int64) * BLOCK_K + tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_T):
        token = (start + tl.arange(0, BLOCK_T)).to(tl.int64)
        here = token < tokens
        y_inside = here[:, None] & (row < n)[None, :]
        x_inside = here[:, None] & (column < k)[None, :]
        y_tile = tl.load(dy + token[:, None] * n + row[None, :], mask=y_inside, other=0.0)
        x_tile = tl.load(x + token[:, None] * k + column[None, :], mask=x_inside, other=0.0)
        total += tl.dot(tl.trans(y_tile), x_tile, input_precision="ieee")
    place = row[:, None] * k + column[None, :]
    inside = (row < n)[:, None] & (column < k)[None, :]
    total += tl.load(before + place, mask=inside, other=0.0)
    tl.store(dweight + place, total, mask=inside)


@triton.jit
def bias_kernel(dy, dbias, tokens, n, BLOCK_T: tl.constexpr, BLOCK_N: tl.constexpr):
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_T, BLOCK_N), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_T):
        token = (start + tl.arange(0, BLOCK_T)).to(tl.int64)
        inside = (token < tokens)[:, None] & (column < n)[None, :]
        place = token[:, None] * n + column[None, :]
        total += tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(dbias + column, tl.sum(total, axis=0), mask=column < n)


def linear_weight_gradient(x, dy, before, dweight, dbias, *, tokens, n, k):
    """Write dweight [n, k] and dbias [n]."""
    weight_kernel[(triton.cdiv(n, 64), triton.cdiv(k, 64))](
        x, dy, before, dweight, tokens, n, k, BLOCK_N=64, BLOCK_K=64, BLOCK_T=32, num_stages=2
    )
    bias_kernel[(triton.cdiv(n, 64),)](dy, dbias, tokens, n, BLOCK_T=32, BLOCK_N=64)
