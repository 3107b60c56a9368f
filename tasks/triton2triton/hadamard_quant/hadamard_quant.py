"""Hadamard transform and 8 bits: products with a matrix of signs, the largest, and the steps."""

import torch
import triton
import triton.language as tl


@triton.jit
def transform_kernel(x, turned, rows, groups, BLOCK: tl.constexpr):
    """The transform of one group of some rows, as a product with its matrix."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    group = tl.program_id(1)
    lane = tl.arange(0, 128)
    both = lane[:, None] & lane[None, :]
    both ^= both >> 4
    both ^= both >> 2
    both ^= both >> 1
    signs = 1.0 - 2.0 * (both & 1).to(tl.float32)
    place = (row[:, None] * groups + group) * 128 + lane[None, :]
    value = tl.load(x + place, mask=(row < rows)[:, None], other=0.0).to(tl.float32)
    result = tl.dot(value, signs, input_precision="ieee") * 0.08838834764831845
    tl.store(turned + place, result, mask=(row < rows)[:, None])


@triton.jit
def quantise_kernel(turned, q, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(turned + row * cols + col, mask=col < cols, other=0.0)
        largest = tl.maximum(largest, tl.abs(value))
    step = tl.max(largest, axis=0) / 127.0
    tl.store(scale + row, step)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(turned + row * cols + col, mask=col < cols, other=0.0)
        steps = tl.floor(tl.where(step > 0.0, value / step, 0.0) + 0.5)
        steps = tl.minimum(tl.maximum(steps, -127.0), 127.0)
        tl.store(q + row * cols + col, steps.to(tl.int8), mask=col < cols)


def hadamard_quant(x, q, scale, *, rows, groups):
    """Write q [rows, 128 * groups] and scale [rows]."""
    turned = torch.empty((rows, groups * 128), dtype=torch.float32, device=x.device)
    transform_kernel[(triton.cdiv(rows, 16), groups)](x, turned, rows, groups, BLOCK=16)
    quantise_kernel[(rows,)](turned, q, scale, groups * 128, BLOCK=1024)
