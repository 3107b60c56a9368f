"""Gradient of the interaction: the symmetric matrix of pairs in a buffer, then its product."""

import torch
import triton
import triton.language as tl


@triton.jit
def spread_kernel(dp, pairs, features, BLOCK: tl.constexpr):
    """The gradients of an example's pairs as a symmetric matrix with an empty diagonal."""
    example = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    high = tl.maximum(row, column)
    low = tl.minimum(row, column)
    inside = (row < features) & (column < features)
    known = inside & (high > low)
    place = example * (features * (features - 1) // 2) + high * (high - 1) // 2 + low
    value = tl.load(dp + place, mask=known, other=0.0)
    tl.store(pairs + (example * features + row) * features + column, value, mask=inside)


@triton.jit
def product_kernel(
    z, pairs, dfirst, dz, features, dim, BLOCK_F: tl.constexpr, BLOCK_D: tl.constexpr
):
    example = tl.program_id(0).to(tl.int64)
    feature = tl.arange(0, BLOCK_F)
    column = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    square = (feature < features)[:, None] & (feature < features)[None, :]
    place = (example * features + feature)[:, None] * features + feature[None, :]
    weight = tl.load(pairs + place, mask=square, other=0.0)
    inside = (feature < features)[:, None] & (column < dim)[None, :]
    place = (example * features + feature)[:, None] * dim + column[None, :]
    value = tl.load(z + place, mask=inside, other=0.0)
    result = tl.dot(weight, value, input_precision="ieee")
    passed = tl.load(dfirst + example * dim + column, mask=column < dim, other=0.0)
    result += tl.where(feature[:, None] == 0, passed.to(tl.float32)[None, :], 0.0)
    tl.store(dz + place, result, mask=inside)


def dot_interaction_backward(z, dp, dfirst, dz, *, batch, features, dim):
    """Write dz [batch, features, dim]."""
    pairs = torch.empty((batch, features, features), dtype=z.dtype, device=z.device)
    block = max(16, triton.next_power_of_2(features))
    spread_kernel[(batch,)](dp, pairs, features, BLOCK=block, num_warps=2)
    product_kernel[(batch, triton.cdiv(dim, 64))](
        z, pairs, dfirst, dz, features, dim, BLOCK_F=block, BLOCK_D=64, num_warps=2
    )
