"""Hadamard transform and 8 bits in one pass: rows stay in registers until they are coded.

The transform is a product with a matrix of signs on tensor cores. Its products are exact in the
dtype of x; a float32 is cut into three bfloat16, which have all of its bits. As many programs as
the device runs at once walk over the rows, so that the matrix is made once for many of them. While
some rows are coded, the next ones are on their way to registers, or to shared memory where they
would take too many of these.
"""

import triton
import triton.language as tl

GROUP = tl.constexpr(128)
# Added to a small number, it leaves the nearest integer in the lowest bits: 1.5 * 2^23.
ROUNDER = tl.constexpr(12582912.0)
WARPS_AT_ONCE = 2112  # 16 on each of 132 multiprocessors
MULTIPROCESSORS = 132


@triton.jit
def matrix_of_signs(CUT: tl.constexpr, dtype: tl.constexpr):
    lane = tl.arange(0, GROUP)
    both = lane[:, None] & lane[None, :]
    both ^= both >> 4
    both ^= both >> 2
    both ^= both >> 1
    signs = 1.0 - 2.0 * (both & 1).to(tl.float32)
    return signs.to(tl.bfloat16 if CUT else dtype)


@triton.jit
def transform(value, signs, CUT: tl.constexpr):
    if CUT:
        # The last of three parts of a tiny number would be zero: groups of them are made larger.
        tiny = (tl.max(tl.abs(value), axis=1) < 1e-30)[:, None]
        value *= tl.where(tiny, 1.8446744073709552e19, 1.0)
        high = value.to(tl.bfloat16)
        value -= high.to(tl.float32)
        middle = value.to(tl.bfloat16)
        value -= middle.to(tl.float32)
        turned = tl.dot(value.to(tl.bfloat16), signs)
        turned = tl.dot(middle, signs, turned)
        turned = tl.dot(high, signs, turned)
        turned *= tl.where(tiny, 5.421010862427522e-20, 1.0)
    else:
        turned = tl.dot(value, signs)
    return turned * 0.08838834764831845


@triton.jit
def factors(largest):
    """Give two factors whose product is 127 / largest; alone it can be infinite."""
    lift = tl.where(largest < 1e-20, 1.8446744073709552e19, 1.0)
    return lift, tl.where(largest > 0.0, 127.0 / (largest * lift), 0.0)


@triton.jit
def ask(x, first, own, group, lane, rows, groups, GROUPS: tl.constexpr):
    """The groups of some rows."""
    row = first + own // GROUPS
    inside = ((row < rows) & (group < groups))[:, None] & (lane < GROUP)[None, :]
    at = (row.to(tl.int64) * groups + group)[:, None] * GROUP + lane[None, :]
    return tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")


@triton.jit
def rows_kernel(
    x, q, scale, rows, groups, ROWS: tl.constexpr, GROUPS: tl.constexpr, CUT: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """With AHEAD, the next rows are asked for here, else by the compiler, if it has two stages."""
    lane = tl.arange(0, GROUP)
    own = tl.arange(0, ROWS * GROUPS)  # the groups of a few rows, padded to GROUPS each
    group = own % GROUPS
    start = tl.program_id(0) * ROWS
    step = tl.num_programs(0) * ROWS
    if AHEAD:
        coming = ask(x, start, own, group, lane, rows, groups, GROUPS)
    signs = matrix_of_signs(CUT, x.dtype.element_ty)
    for first in range(start, rows, step):
        if AHEAD:
            value = coming
            coming = ask(x, first + step, own, group, lane, rows, groups, GROUPS)
        else:
            value = ask(x, first, own, group, lane, rows, groups, GROUPS)
        row = first + own // GROUPS
        inside = ((row < rows) & (group < groups))[:, None] & (lane < GROUP)[None, :]
        at = (row.to(tl.int64) * groups + group)[:, None] * GROUP + lane[None, :]
        turned = transform(value, signs, CUT)
        largest = tl.max(tl.reshape(tl.max(tl.abs(turned), axis=1), (ROWS, GROUPS)), axis=1)
        row = first + tl.arange(0, ROWS)
        tl.store(scale + row, largest / 127.0, mask=row < rows)
        lift, inverse = factors(largest)
        lift = tl.reshape(tl.broadcast_to(lift[:, None], (ROWS, GROUPS)), (ROWS * GROUPS,))
        inverse = tl.reshape(tl.broadcast_to(inverse[:, None], (ROWS, GROUPS)), (ROWS * GROUPS,))
        steps = turned * lift[:, None] * inverse[:, None] + ROUNDER
        tl.store(q + at, steps.to(tl.int32, bitcast=True).to(tl.int8), mask=inside)


@triton.jit
def long_rows_kernel(x, q, scale, rows, groups, GROUPS: tl.constexpr, CUT: tl.constexpr):
    """Rows that do not fit are transformed twice, the second time out of the cache."""
    signs = matrix_of_signs(CUT, x.dtype.element_ty)
    own = tl.arange(0, GROUPS)
    lane = tl.arange(0, GROUP)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        largest = 0.0
        for first in range(0, groups, GROUPS):
            inside = (own < groups - first)[:, None] & (lane < GROUP)[None, :]
            at = (row * groups + first + own).to(tl.int64)[:, None] * GROUP + lane[None, :]
            turned = transform(tl.load(x + at, mask=inside, other=0.0), signs, CUT)
            largest = tl.maximum(largest, tl.max(tl.max(tl.abs(turned), axis=1), axis=0))
        tl.store(scale + row, largest / 127.0)
        lift, inverse = factors(largest)
        for first in range(0, groups, GROUPS):
            inside = (own < groups - first)[:, None] & (lane < GROUP)[None, :]
            at = (row * groups + first + own).to(tl.int64)[:, None] * GROUP + lane[None, :]
            turned = transform(tl.load(x + at, mask=inside, other=0.0), signs, CUT)
            steps = turned * lift * inverse + ROUNDER
            tl.store(q + at, steps.to(tl.int32, bitcast=True).to(tl.int8), mask=inside)


def hadamard_quant(x, q, scale, *, rows, groups):
    """Write q [rows, 128 * groups] and scale [rows]."""
    cut = x.element_size() == 4
    padded = triton.next_power_of_2(groups)
    if cut and padded > 64:
        long_rows_kernel[(min(rows, WARPS_AT_ONCE // 4),)](
            x, q, scale, rows, groups, GROUPS=64, CUT=cut, num_warps=4, num_stages=1
        )
        return
    # 64 groups fill the tensor cores of 4 warps; the matrix of signs serves them all.
    together = max(64 // padded, 1)
    warps = max(together * padded // 16, 4)
    # Two programs on each multiprocessor walk over many rows of 128 groups. Few rows are not worth
    # the way through shared memory.
    piped = padded == 128 and rows >= 4 * MULTIPROCESSORS
    at_once = 2 * MULTIPROCESSORS if cut or piped else WARPS_AT_ONCE // warps
    if padded == 128 and not piped:
        at_once = MULTIPROCESSORS  # the next rows take the registers of a second program
    programs = min(triton.cdiv(rows, together), at_once)
    rows_kernel[(programs,)](
        x, q, scale, rows, groups, ROWS=together, GROUPS=padded, CUT=cut,
        AHEAD=not piped, num_warps=warps, num_stages=2 if piped else 1,
    )  # fmt: skip
