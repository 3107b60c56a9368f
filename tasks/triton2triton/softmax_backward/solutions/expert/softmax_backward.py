"""Gradient of softmax in one pass: rows stay in registers between their sum and the result.

Short rows share a program, so that a program always moves a few thousand elements.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 2048
ELEMENTS_A_WARP = 512


@triton.jit
def softmax_backward_kernel(
    y, dy, dx, scale, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    at = row.to(tl.int64)[:, None] * cols + col[None, :]
    share = tl.load(y + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    gradient = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
    gradient = gradient.to(tl.float32)
    total = tl.sum(share * gradient, axis=1)
    tl.store(dx + at, scale * share * (gradient - total[:, None]), mask=inside)


def softmax_backward(y, dy, dx, *, scale, rows, cols):
    """Write the gradient of the scores, dx [rows, cols]."""
    block = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // ELEMENTS_A_WARP, 1), 32)
    softmax_backward_kernel[(triton.cdiv(rows, together),)](
        y, dy, dx, scale, rows, cols, ROWS=together, BLOCK=block, num_warps=warps
    )
