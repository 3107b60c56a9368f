"""SwiGLU to int8 in one pass: a program takes several groups, whatever rows they belong to."""

import triton
import triton.language as tl

GROUPS_A_PROGRAM = 8
LEAST = tl.constexpr(1e-20)  # a group of smaller products counts as zeros


@triton.jit
def swiglu_quant_kernel(
    x, q, scale, total, groups, GROUPS: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)  # of all rows
    inside = group < total
    lane = tl.arange(0, GROUP)
    at = (group + group // groups * groups)[:, None] * GROUP + lane[None, :]
    seen = inside[:, None] & (lane < GROUP)[None, :]
    gate = tl.load(x + at, mask=seen, other=0.0, eviction_policy="evict_first").to(tl.float32)
    value = tl.load(x + at + groups * GROUP, mask=seen, other=0.0, eviction_policy="evict_first")
    product = gate / (1.0 + tl.exp(-gate)) * value.to(tl.float32)
    largest = tl.max(tl.abs(product), axis=1)
    step = tl.where(largest < LEAST, 0.0, largest) / 127.0
    tl.store(scale + group, step, mask=inside)
    inverse = tl.where(step > 0.0, 1.0 / step, 0.0)
    steps = tl.floor(product * inverse[:, None] + 0.5)
    steps = tl.minimum(tl.maximum(steps, -127.0), 127.0)
    tl.store(q + group[:, None] * GROUP + lane[None, :], steps.to(tl.int8), mask=seen)


def swiglu_quant(x, q, scale, *, rows, groups):
    """Gate, multiply and quantise x [rows, 2 * 128 * groups]."""
    total = rows * groups
    together = min(GROUPS_A_PROGRAM, triton.next_power_of_2(total))
    swiglu_quant_kernel[(triton.cdiv(total, together),)](
        x, q, scale, total, groups, GROUPS=together, GROUP=128, num_warps=4
    )
