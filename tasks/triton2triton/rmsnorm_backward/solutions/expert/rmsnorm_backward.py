"""Gradients of RMS normalisation in one pass over x and dy.

As many programs as the device runs at once walk over the rows; the next rows are on their way to
shared memory meanwhile. A row stays in registers between its sum and its gradient. Each program
adds up its part of the weight's gradient, and a second, small kernel adds the parts in a fixed
order.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_WARP = 256
ROWS_AT_ONCE = 1  # of rows that more than one warp works on
SHORT = 512  # elements: shorter rows share a program, so that a warp has rows of its own
SHORT_ROWS = 2048  # elements of short rows in a program
WARPS_AT_ONCE = 4224  # 32 on each of 132 multiprocessors
WARPS_OF_CHUNKS = 2112
MULTIPROCESSORS = 132
MEMORY = 2**17  # bytes of rows on their way to a program


@triton.jit
def rows_kernel(
    x, weight, rstd, dy, dx, of_weight, rows, cols,
    ROWS: tl.constexpr, KEPT: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """A row is CHUNKS times WIDTH long; sums of KEPT rows (ROWS, or 1) are kept apart."""
    program = tl.program_id(0)
    lane = tl.arange(0, WIDTH)[None, :]
    gains = ()
    weights = ()
    for chunk in tl.static_range(CHUNKS):
        col = chunk * WIDTH + lane
        gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
        gains = gains + (gain,)
        weights = weights + (tl.zeros((KEPT, WIDTH), dtype=tl.float32),)
    for first in tl.range(program * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        begin = row.to(tl.int64)[:, None] * cols
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        normals = ()
        gradients = ()
        next_weights = ()
        for chunk in tl.static_range(CHUNKS):
            col = chunk * WIDTH + lane
            inside = (row < rows)[:, None] & (col < cols)
            at = begin + col
            value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
            upper = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
            upper = upper.to(tl.float32)
            normal = value.to(tl.float32) * scale
            gradient = upper * gains[chunk]
            normals = normals + (normal,)
            gradients = gradients + (gradient,)
            if chunk == 0:
                products = gradient * normal
            else:
                products += gradient * normal
            if KEPT == ROWS:
                next_weights = next_weights + (weights[chunk] + upper * normal,)
            else:
                more = tl.sum(upper * normal, axis=0)[None, :]
                next_weights = next_weights + (weights[chunk] + more,)
        weights = next_weights
        along = tl.sum(products, axis=1)[:, None] / cols
        for chunk in tl.static_range(CHUNKS):
            col = chunk * WIDTH + lane
            inside = (row < rows)[:, None] & (col < cols)
            result = scale * (gradients[chunk] - normals[chunk] * along)
            tl.store(dx + begin + col, result, mask=inside)
    for chunk in tl.static_range(CHUNKS):
        col = chunk * WIDTH + lane
        place = program * cols + col
        tl.store(of_weight + place, tl.sum(weights[chunk], axis=0)[None, :], mask=col < cols)


@triton.jit
def sum_kernel(of_weight, dweight, parts, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    weights = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < parts)[:, None] & (col < cols)[None, :]
        at = part[:, None] * cols + col[None, :]
        weights += tl.load(of_weight + at, mask=inside, other=0.0)
    tl.store(dweight + col, tl.sum(weights, axis=0), mask=col < cols)


def rmsnorm_backward(x, weight, rstd, dy, dx, dweight, *, rows, cols):
    """Write the gradients of x [rows, cols] and weight [cols] into dx and dweight."""
    width = triton.next_power_of_2(cols)
    chunks, kept = 1, 1
    if width <= SHORT:
        together = min(SHORT_ROWS // width, triton.next_power_of_2(rows))
        kept = together
        warps = max(together * width // ELEMENTS_A_WARP, 1)
    elif 8 * cols <= 5 * width and cols % 4 != 0:
        # Few of a power of two's lanes would work, and no load is wide.
        together, warps = 1, min(max(width // 512, 1), 16)
        width //= 16
        chunks = triton.cdiv(cols, width)
    else:
        together, warps = ROWS_AT_ONCE, min(width // ELEMENTS_A_WARP, 32)
    size = 2 * width * chunks * x.element_size()
    if together * size > MEMORY:
        together = 1
    stages = 3 if 2 * together * size <= MEMORY else 2
    at_once = WARPS_AT_ONCE if chunks == 1 else WARPS_OF_CHUNKS
    parts = min(triton.cdiv(rows, together), max(at_once // warps, MULTIPROCESSORS))
    of_weight = torch.empty((parts, cols), dtype=torch.float32, device=x.device)
    rows_kernel[(parts,)](
        x, weight, rstd, dy, dx, of_weight, rows, cols,
        ROWS=together, KEPT=kept, WIDTH=width, CHUNKS=chunks, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    # All parts of a few columns are asked for at once.
    few = 8 if cols <= 4096 else 16
    sum_kernel[(triton.cdiv(cols, few),)](
        of_weight, dweight, parts, cols,
        PARTS=min(triton.next_power_of_2(parts), 8192 // few), BLOCK=few, num_warps=8,
    )  # fmt: skip
