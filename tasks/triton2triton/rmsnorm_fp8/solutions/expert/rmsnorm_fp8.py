"""Residual, RMS normalisation and E4M3 in one pass: a row stays in registers until it is coded.

Of many rows of half precision, as many programs as the device runs at once walk over them; the next
ones are on their way to shared memory meanwhile.
"""

import triton
import triton.language as tl

GROUP = 128
WARPS_AT_ONCE = 4224  # 32 on each of 132 multiprocessors
MEMORY = 2**17  # bytes of rows on their way to a program


@triton.jit
def rmsnorm_fp8_kernel(
    x, residual, weight, sum_new, code, scale, eps, rows, groups,
    GROUPS: tl.constexpr, GROUP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A step at a value's size is 2^-3 of its power of two, at least 2^-9."""
    group = tl.arange(0, GROUPS)
    col = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = col < groups * GROUP
    gain = tl.load(weight + col, mask=inside, other=0.0)
    for number in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        row = tl.cast(number, tl.int64)
        at = row * groups * GROUP + col
        value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(
            tl.float32
        )
        added = tl.load(residual + at, mask=inside, other=0.0, eviction_policy="evict_first")
        value += added.to(tl.float32)
        tl.store(sum_new + at, value, mask=inside)
        squares = tl.sum(tl.sum(value * value, axis=1), axis=0)
        value = value * tl.rsqrt(squares / (groups * GROUP) + eps) * gain.to(tl.float32)
        step = tl.max(tl.abs(value), axis=1) / 448.0
        tl.store(scale + row * groups + group, step, mask=group < groups)
        # The inverse of a step that is nearly zero would be infinite: it is made larger first.
        lift = tl.where(step < 1e-30, 1.8446744073709552e19, 1.0)
        inverse = tl.where(step > 0.0, 1.0 / (step * lift), 0.0)[:, None]
        size = tl.minimum(tl.abs(value) * lift[:, None] * inverse, 448.0)
        exponent = tl.maximum((size.to(tl.int32, bitcast=True) >> 23) - 127, -6)
        fine = ((130 - exponent) << 23).to(tl.float32, bitcast=True)  # 2^(3 - exponent)
        eighths = tl.floor(size * fine + 0.5).to(tl.int32)
        bits = eighths + ((exponent + 6) << 3)
        sign = (value.to(tl.int32, bitcast=True) >> 31) & 128  # zeros have one, too
        bits = tl.where((step > 0.0)[:, None], bits + sign, bits)
        tl.store(code + at, bits.to(tl.uint8), mask=inside)


def rmsnorm_fp8(x, residual, weight, sum_new, code, scale, *, eps, rows, groups):
    """Write sum_new and code [rows, 128 * groups] and scale [rows, groups]."""
    together = triton.next_power_of_2(groups)
    size = 2 * x.element_size() * together * GROUP
    warps = min(max(together // 2, 1), 32)
    programs = WARPS_AT_ONCE // warps
    stages = 3 if 2 * size <= MEMORY else 2
    if programs >= rows or size > MEMORY or x.element_size() == 4:
        programs, stages, warps = rows, 1, min(max(together // 4, 1), 32)
    rmsnorm_fp8_kernel[(programs,)](
        x, residual, weight, sum_new, code, scale, eps, rows, groups,
        GROUPS=together, GROUP=GROUP, STAGES=stages, num_warps=warps,
    )  # fmt: skip
