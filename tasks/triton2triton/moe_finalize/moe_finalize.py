"""The end of a mixture of experts: weighted rows in order of tokens, then their sums."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(
    x, bias, expert, slot, weight, sorted_rows, cols, BLOCK: tl.constexpr
):  # fmt: skip
    """One choice's row with its bias, weighted: a row of sorted_rows [tokens * k, cols]."""
    choice = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(slot + choice).to(tl.int64)
    own = tl.load(expert + choice).to(tl.int64)
    inside = (column < cols) & (place >= 0)
    value = tl.load(x + place * cols + column, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias + own * cols + column, mask=inside, other=0.0).to(tl.float32)
    value *= tl.load(weight + choice)
    tl.store(sorted_rows + choice * cols + column, value, mask=column < cols)


@triton.jit
def add_kernel(sorted_rows, residual, y, k, cols, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < cols
    total = tl.load(residual + token * cols + column, mask=inside, other=0.0).to(tl.float32)
    for choice in range(k):
        row = token * k + choice
        total += tl.load(sorted_rows + row * cols + column, mask=inside, other=0.0)
    tl.store(y + token * cols + column, total, mask=inside)


def moe_finalize(
    x, bias, residual, expert, slot, weight, y, *, tokens, rows, k, experts, cols
):  # fmt: skip
    """Write residual and the weighted rows of each token's choices into y [tokens, cols]."""
    sorted_rows = torch.empty((tokens * k, cols), dtype=torch.float32, device=x.device)
    blocks = triton.cdiv(cols, 1024)
    gather_kernel[(tokens * k, blocks)](
        x, bias, expert, slot, weight, sorted_rows, cols, BLOCK=1024
    )  # fmt: skip
    add_kernel[(tokens, blocks)](sorted_rows, residual, y, k, cols, BLOCK=1024)
