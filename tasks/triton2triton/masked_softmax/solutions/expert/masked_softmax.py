"""Softmax of masked scores in one pass: only visible scores are read, and rows stay in registers.

Short rows share a program, so that a program always moves a few thousand elements.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 2048
ELEMENTS_A_WARP = 512


@triton.jit
def masked_softmax_kernel(
    x, length, y, scale, rows, heads, seq, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # of all heads
    inside = row < rows
    known = tl.load(length + row // (heads * seq), mask=inside, other=1)
    end = tl.minimum(row % seq + 1, known)
    key = tl.arange(0, BLOCK)
    at = row.to(tl.int64)[:, None] * seq + key[None, :]
    seen = inside[:, None] & (key[None, :] < end[:, None])
    value = tl.load(x + at, mask=seen, other=0.0, eviction_policy="evict_first").to(tl.float32)
    value = tl.where(seen | (key == 0)[None, :], value * scale, float("-inf"))
    share = tl.exp(value - tl.max(value, axis=1)[:, None])
    share /= tl.sum(share, axis=1)[:, None]
    tl.store(y + at, share, mask=inside[:, None] & (key < seq)[None, :])


def masked_softmax(x, length, y, *, scale, batch, heads, seq):
    """Write the softmax of the visible scores of x [batch, heads, seq, seq] into y."""
    rows, block = batch * heads * seq, triton.next_power_of_2(seq)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // ELEMENTS_A_WARP, 1), 32)
    masked_softmax_kernel[(triton.cdiv(rows, together),)](
        x, length, y, scale, rows, heads, seq, ROWS=together, BLOCK=block, num_warps=warps
    )
