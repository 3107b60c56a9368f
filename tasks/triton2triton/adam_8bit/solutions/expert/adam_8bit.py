"""A step of 8-bit AdamW in one pass: blocks stay in registers between their maxima and their bytes.

A thread takes 4 neighbours of each of two blocks, so that all tensors, of 1 to 4 bytes an element,
are read and written in one layout.
"""

import math

import triton
import triton.language as tl

SIZE = tl.constexpr(256)  # of a block
# Added to a small number, it leaves the nearest integer in the lowest bits: 1.5 * 2^23.
ROUNDER = tl.constexpr(12582912.0)


@triton.jit
def larger_of_both(first, second, other_first, other_second):
    return tl.maximum(first, other_first), tl.maximum(second, other_second)


@triton.jit
def adam_8bit_kernel(
    grad, master, first, second, first_scale, second_scale,
    master_new, first_new, second_new, first_scale_new, second_scale_new,
    beta1, beta2, eps, shrink, rate, widen, blocks, DEEP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0) * (DEEP * WIDE)
    block += tl.arange(0, DEEP)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    known = block < blocks
    lane = tl.arange(0, SIZE // 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    i = block[:, :, None, None] * SIZE + lane[None, None, :, :]  # below 2^28
    inside = known[:, :, None, None] & (lane < SIZE)[None, None, :, :]
    gradient = tl.load(grad + i, mask=inside, other=0.0, eviction_policy="evict_first")
    steps = tl.load(first + i, mask=inside, other=0, eviction_policy="evict_first")
    roots = tl.load(second + i, mask=inside, other=0, eviction_policy="evict_first")
    old = tl.load(master + i, mask=inside, other=0.0, eviction_policy="evict_first")
    size = tl.load(first_scale + block, mask=known, other=0.0) * (1.0 / 127.0)
    square = tl.maximum(tl.load(second_scale + block, mask=known, other=0.0), 0.0)
    gradient = gradient.to(tl.float32)
    root = roots.to(tl.float32) * (1.0 / 255.0)
    m = beta1 * (steps.to(tl.float32) * size[:, :, None, None]) + (1.0 - beta1) * gradient
    v = beta2 * (root * root * square[:, :, None, None]) + (1.0 - beta2) * gradient * gradient
    largest, highest = tl.reduce((tl.abs(m), v), 3, larger_of_both)
    largest, highest = tl.reduce((largest, highest), 2, larger_of_both)
    tl.store(first_scale_new + block, largest, mask=known)
    tl.store(second_scale_new + block, highest, mask=known)
    # The quick root of a denormal is 0: blocks of such are lifted by 2^64, and roots by 2^32.
    small = highest < 1e-30
    root = tl.sqrt(v * tl.where(small, 1.8446744073709552e19, 1.0)[:, :, None, None])
    back = widen * tl.where(small, 2.3283064365386963e-10, 1.0)[:, :, None, None]
    tl.store(master_new + i, old * shrink - rate * m / (root * back + eps), mask=inside)
    # 127 / largest alone is infinite where largest is denormal.
    lift = tl.where(largest < 1e-20, 1.8446744073709552e19, 1.0)
    inverse = tl.where(largest > 0.0, 127.0 / (largest * lift), 0.0)
    # Roundings and conversions have few units; sums have many.
    steps = m * lift[:, :, None, None] * inverse[:, :, None, None] + ROUNDER
    tl.store(first_new + i, steps.to(tl.int32, bitcast=True).to(tl.int8), mask=inside)
    highest *= tl.where(small, 1.8446744073709552e19, 1.0)
    inverse = tl.where(highest > 0.0, 255.0 / tl.sqrt(highest), 0.0)
    roots = root * inverse[:, :, None, None] + ROUNDER
    tl.store(second_new + i, roots.to(tl.int32, bitcast=True).to(tl.uint8), mask=inside)


def adam_8bit(
    grad, master, first, second, first_scale, second_scale,
    master_new, first_new, second_new, first_scale_new, second_scale_new,
    *, lr, beta1, beta2, eps, decay, c1, c2, blocks,
):  # fmt: skip
    """Write the parameters and their moments after one step."""
    adam_8bit_kernel[(triton.cdiv(blocks, 4),)](
        grad, master, first, second, first_scale, second_scale,
        master_new, first_new, second_new, first_scale_new, second_scale_new,
        beta1, beta2, eps, 1.0 - lr * decay, lr / c1, 1.0 / math.sqrt(c2), blocks,
        DEEP=2, WIDE=2, num_warps=4,
    )  # fmt: skip
