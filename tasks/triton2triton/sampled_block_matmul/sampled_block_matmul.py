"""Blocks of a product: one program for each block, which walks over all of k."""

import triton
import triton.language as tl


@triton.jit
def block_kernel(
    x, weight, bias, row, column, y, k, SIZE: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64)
    step = tl.arange(0, SIZE)
    down = tl.load(row + block).to(tl.int64) * SIZE + step
    across = tl.load(column + block).to(tl.int64) * SIZE + step
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        inside = (depth < k)[None, :]
        x_tile = tl.load(x + down[:, None] * k + depth[None, :], mask=inside, other=0.0)
        w_tile = tl.load(weight + across[:, None] * k + depth[None, :], mask=inside, other=0.0)
        total += tl.dot(x_tile, tl.trans(w_tile), input_precision="ieee")
    total += tl.load(bias + across).to(tl.float32)[None, :]
    bent = 1.5957691216057308 * (total + 0.044715 * total * total * total)
    place = (block * SIZE + step)[:, None] * SIZE + step[None, :]
    tl.store(y + place, total * tl.sigmoid(bent))


def sampled_block_matmul(x, weight, bias, row, column, y, *, down, across, blocks, k):
    """Write the blocks at row and column of the activated product into y [blocks, 64, 64]."""
    block_kernel[(blocks,)](x, weight, bias, row, column, y, k, SIZE=64, BLOCK_K=32, num_stages=2)
