"""Residual, RMS normalisation and E4M3 in two kernels: a row's scale, then one group a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, residual, sum_new, factor, eps, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        place = row * cols + col
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(sum_new + place, value, mask=inside)
        squares += value * value
    tl.store(factor + row, tl.rsqrt(tl.sum(squares, axis=0) / cols + eps))


@triton.jit
def groups_kernel(x, residual, weight, factor, code, scale, groups):
    """Codes of 128 columns. A step at a value's size is 2^-3 of its power of two, at least 2^-9."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    col = group * 128 + tl.arange(0, 128)
    place = row * groups * 128 + col
    value = tl.load(x + place).to(tl.float32) + tl.load(residual + place).to(tl.float32)
    value = value * tl.load(factor + row) * tl.load(weight + col).to(tl.float32)
    step = tl.max(tl.abs(value), axis=0) / 448.0
    tl.store(scale + row * groups + group, step)
    size = tl.minimum(tl.where(step > 0.0, tl.abs(value) / step, 0.0), 448.0)
    exponent = tl.maximum((size.to(tl.int32, bitcast=True) >> 23) - 127, -6)
    fine = tl.exp2((3 - exponent).to(tl.float32))
    eighths = tl.floor(size * fine + 0.5).to(tl.int32)
    bits = eighths + ((exponent + 6) << 3)
    sign = (value.to(tl.int32, bitcast=True) >> 31) & 128  # zeros have one, too
    bits = tl.where(step > 0.0, bits + sign, bits)
    tl.store(code + place, bits.to(tl.uint8))


def rmsnorm_fp8(x, residual, weight, sum_new, code, scale, *, eps, rows, groups):
    """Write sum_new and code [rows, 128 * groups] and scale [rows, groups]."""
    factor = torch.empty(rows, dtype=torch.float32, device=x.device)
    rows_kernel[(rows,)](x, residual, sum_new, factor, eps, groups * 128, BLOCK=1024, num_warps=4)
    groups_kernel[(rows, groups)](x, residual, weight, factor, code, scale, groups, num_warps=1)
