"""Scaled causal softmax in one pass: no mask is made, and what it hides is not read."""

import torch
import triton
import triton.language as tl

SCALE = 8.0
"""The root of a head's 64 features."""


@triton.jit
def causal_softmax_kernel(x, y, columns, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    seen = column <= row % columns
    scores = tl.load(x + row * columns + column, mask=seen, other=float("-inf")).to(tl.float32)
    scores = scores / SCALE
    found = tl.exp(scores - tl.max(scores, axis=0))
    found = found / tl.sum(found, axis=0)
    tl.store(y + row * columns + column, found, mask=column < columns)


def div_ones_triu(x):
    """Return the weights of scores x [batch, heads, tokens, tokens]."""
    x = x.contiguous()
    y = torch.empty_like(x)
    columns = x.shape[-1]
    block = triton.next_power_of_2(columns)
    # kabuild:tune num_warps = 1, 2, 4, 8, 16
    causal_softmax_kernel[(x.numel() // columns,)](
        x, y, columns, SCALE=SCALE, BLOCK=block, num_warps=4
    )
    return y
