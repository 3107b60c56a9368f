"""Gradient of an embedding table: each token's row is added atomically in float32, then rounded."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rows_kernel(token, dy, sums, cols, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    row = tl.load(token + place)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        gradient = tl.load(dy + place * cols + col, mask=inside, other=0.0).to(tl.float32)
        tl.atomic_add(sums + row * cols + col, gradient, mask=inside)


@triton.jit
def round_kernel(sums, dtable, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dtable + at, tl.load(sums + at, mask=at < size, other=0.0), mask=at < size)


def embedding_backward(token, dy, dtable, *, count, vocab, cols):
    """Write the sums of rows of dy [count, cols] into dtable [vocab, cols]."""
    sums = torch.zeros((vocab, cols), dtype=torch.float32, device=dy.device)
    add_rows_kernel[(count,)](token, dy, sums, cols, BLOCK=512, num_warps=4)
    size = vocab * cols
    round_kernel[(triton.cdiv(size, 1024),)](sums, dtable, size, BLOCK=1024, num_warps=4)
