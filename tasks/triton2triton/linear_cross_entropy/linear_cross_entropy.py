"""The last layer and its loss: a program a tile of rows, which walks over the vocabulary."""

import triton
import triton.language as tl


@triton.jit
def linear_cross_entropy_kernel(
    x, weight, target, lse, picked, rows, vocab, width,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    chosen = tl.load(target + row, mask=row < rows, other=-1)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    own = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for first in range(0, vocab, BLOCK_N):
        column = (first + tl.arange(0, BLOCK_N)).to(tl.int64)
        logit = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, width, BLOCK_K):
            depth = start + tl.arange(0, BLOCK_K)
            x_inside = (row < rows)[:, None] & (depth < width)[None, :]
            w_inside = (column < vocab)[:, None] & (depth < width)[None, :]
            x_place = row[:, None] * width + depth[None, :]
            w_place = column[:, None] * width + depth[None, :]
            x_tile = tl.load(x + x_place, mask=x_inside, other=0.0)
            w_tile = tl.load(weight + w_place, mask=w_inside, other=0.0)
            logit += tl.dot(x_tile, tl.trans(w_tile), input_precision="ieee")
        own += tl.sum(tl.where(column[None, :] == chosen[:, None], logit, 0.0), axis=1)
        logit = tl.where((column < vocab)[None, :], logit, float("-inf"))
        higher = tl.maximum(peak, tl.max(logit, axis=1))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(logit - higher[:, None]), axis=1)
        peak = higher
    tl.store(lse + row, peak + tl.log(total), mask=row < rows)
    tl.store(picked + row, own, mask=row < rows)


def linear_cross_entropy(x, weight, target, lse, picked, *, rows, vocab, width):
    """Write lse and picked [rows]."""
    linear_cross_entropy_kernel[(triton.cdiv(rows, 32),)](
        x, weight, target, lse, picked, rows, vocab, width,
        BLOCK_M=32, BLOCK_N=64, BLOCK_K=32, num_stages=2,
    )  # fmt: skip
