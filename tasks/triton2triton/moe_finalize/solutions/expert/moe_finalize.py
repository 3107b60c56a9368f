"""The end of a mixture of experts in one pass: a token's rows are added up in registers.

A program takes some columns of a token, and loads several of its choices' rows at a time.
"""

import triton
import triton.language as tl

WIDEST_TILE = 1024
MOST_CHOICES_AT_ONCE = 4


@triton.jit
def finalize_kernel(
    x, bias, residual, expert, slot, weight, y, k, cols, blocks,
    CHOICES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    token = program // blocks
    column = program % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = column < cols
    at = token.to(tl.int64) * cols + column
    total = tl.load(residual + at, mask=inside, other=0.0, eviction_policy="evict_first")
    total = total.to(tl.float32)
    for first in range(0, k, CHOICES):
        own = first + tl.arange(0, CHOICES)
        choice = token * k + own
        place = tl.load(slot + choice, mask=own < k, other=-1)
        kept = place >= 0
        share = tl.load(weight + choice, mask=kept, other=0.0)
        of_expert = tl.load(expert + choice, mask=kept, other=0)[:, None] * cols + column[None, :]
        seen = kept[:, None] & inside[None, :]
        source = x + place.to(tl.int64)[:, None] * cols + column[None, :]
        value = tl.load(source, mask=seen, other=0.0, eviction_policy="evict_first")
        added = tl.load(bias + of_expert, mask=seen, other=0.0)  # below 2^23
        value = share[:, None] * (value.to(tl.float32) + added.to(tl.float32))
        total += tl.sum(value, axis=0)
    tl.store(y + at, total, mask=inside)


def moe_finalize(
    x, bias, residual, expert, slot, weight, y, *, tokens, rows, k, experts, cols
):  # fmt: skip
    """Write residual and the weighted rows of each token's choices into y [tokens, cols]."""
    block = min(triton.next_power_of_2(cols), WIDEST_TILE)
    blocks = triton.cdiv(cols, block)
    finalize_kernel[(tokens * blocks,)](
        x, bias, residual, expert, slot, weight, y, k, cols, blocks,
        CHOICES=min(triton.next_power_of_2(k), MOST_CHOICES_AT_ONCE), BLOCK=block,
        num_warps=max(block // 256, 1),
    )  # fmt: skip
