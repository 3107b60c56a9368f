"""Gradient of softmax in one pass: rows stay in registers between their sum and the result.

Short rows share a program, so that each moves a thousand elements or a few. Places are counted from
a program's first row, in 32 bits.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 1024
ELEMENTS_A_WARP = 256


@triton.jit
def softmax_backward_kernel(
    y, dy, dx, scale, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (first + row < rows)[:, None] & (col < cols)[None, :]
    at = row[:, None] * cols + col[None, :]
    place = first * cols
    share = tl.load(y + place + at, mask=inside, other=0.0).to(tl.float32)
    gradient = tl.load(dy + place + at, mask=inside, other=0.0).to(tl.float32)
    total = tl.sum(share * gradient, axis=1)
    tl.store(dx + place + at, scale * share * (gradient - total[:, None]), mask=inside)


def softmax_backward(y, dy, dx, *, scale, rows, cols):
    """Write the gradient of the scores, dx [rows, cols]."""
    block = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // ELEMENTS_A_WARP, 1), 32)
    softmax_backward_kernel[(triton.cdiv(rows, together),)](
        y, dy, dx, scale, rows, cols, ROWS=together, BLOCK=block, num_warps=warps
    )
