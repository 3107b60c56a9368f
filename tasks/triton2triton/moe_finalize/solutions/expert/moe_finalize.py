"""The end of a mixture of experts in one pass: a token's rows are added up in registers.

A program takes some columns of a token, and loads several of its choices' rows at a time. The
biases may stay in the first-level cache, which rows that are read once do not enter.
"""

import triton
import triton.language as tl

WIDEST_TILE = 1024
MOST_CHOICES_AT_ONCE = 4


@triton.jit
def finalize_kernel(
    x, bias, residual, expert, slot, weight, y, tokens, k, cols, blocks,
    WHOLE: tl.constexpr, CHOICES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    if WHOLE:
        # Programs that run at once read whole rows.
        token, block = program // blocks, program % blocks
    else:
        # Programs that run at once have the same columns, so that they share more of the biases.
        token, block = program % tokens, program // tokens
    column = block * BLOCK + tl.arange(0, BLOCK)
    inside = column < cols
    at = token.to(tl.int64) * cols + column
    total = tl.load(residual + at, mask=inside, other=0.0, cache_modifier=".cg")
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
        value = tl.load(source, mask=seen, other=0.0, cache_modifier=".cg")
        added = tl.load(bias + of_expert, mask=seen, other=0.0)  # below 2^23
        value = share[:, None] * (value.to(tl.float32) + added.to(tl.float32))
        total += tl.sum(value, axis=0)
    tl.store(y + at, total, mask=inside)


def moe_finalize(
    x, bias, residual, expert, slot, weight, y, *, tokens, rows, k, experts, cols
):  # fmt: skip
    """Write residual and the weighted rows of each token's choices into y [tokens, cols]."""
    widest = min(triton.next_power_of_2(cols), WIDEST_TILE)
    # The widest tile that leaves the fewest lanes idle.
    block = min((widest >> n or 1 for n in range(3)), key=lambda b: triton.cdiv(cols, b) * b)
    blocks = triton.cdiv(cols, block)
    whole = cols % 16 == 0  # rows are read in vectors of 16 bytes, or number by number
    finalize_kernel[(tokens * blocks,)](
        x, bias, residual, expert, slot, weight, y, tokens, k, cols, blocks,
        WHOLE=whole, CHOICES=min(triton.next_power_of_2(k), MOST_CHOICES_AT_ONCE), BLOCK=block,
        num_warps=max(block // (256 if whole else 64), 1),
    )  # fmt: skip
