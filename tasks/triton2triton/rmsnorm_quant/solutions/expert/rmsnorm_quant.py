"""RMS normalisation to int8 in one pass: a row stays in registers for its scale and its maximum.

Short rows share a program, so that a program always moves a few thousand elements. Rows little
longer than a power of two are cut into chunks, so that few lanes are idle.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 2048
ELEMENTS_A_WARP = 1024


@triton.jit
def rmsnorm_quant_kernel(
    x, weight, q, scale, eps, rows, cols,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """A row is CHUNKS times WIDTH long."""
    lane = tl.arange(0, WIDTH)[None, :]
    gains = ()
    for chunk in tl.static_range(CHUNKS):
        col = chunk * WIDTH + lane
        gains = gains + (tl.load(weight + col, mask=col < cols, other=0.0),)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    begin = row.to(tl.int64)[:, None] * cols
    values = ()
    for chunk in tl.static_range(CHUNKS):
        col = chunk * WIDTH + lane
        inside = (row < rows)[:, None] & (col < cols)
        value = tl.load(x + begin + col, mask=inside, other=0.0, eviction_policy="evict_first")
        value = value.to(tl.float32)
        values = values + (value,)
        if chunk == 0:
            squares = value * value
        else:
            squares += value * value
    factor = tl.rsqrt(tl.sum(squares, axis=1) / cols + eps)[:, None]
    normals, largest = (), tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for chunk in tl.static_range(CHUNKS):
        normal = values[chunk] * factor * gains[chunk].to(tl.float32)
        normals = normals + (normal,)
        largest = tl.maximum(largest, tl.abs(normal))
    step = tl.max(largest, axis=1) / 127.0
    tl.store(scale + row, step, mask=row < rows)
    inverse = tl.where(step > 0.0, 1.0 / step, 0.0)[:, None]
    for chunk in tl.static_range(CHUNKS):
        col = chunk * WIDTH + lane
        inside = (row < rows)[:, None] & (col < cols)
        steps = tl.floor(normals[chunk] * inverse + 0.5)
        steps = tl.minimum(tl.maximum(steps, -127.0), 127.0)
        tl.store(q + begin + col, steps.to(tl.int8), mask=inside)


def rmsnorm_quant(x, weight, q, scale, *, eps, rows, cols):
    """Normalise x [rows, cols] into steps q [rows, cols] of scale [rows]."""
    width = triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // width, triton.next_power_of_2(rows)))
    chunks = 1
    if width > ELEMENTS_A_PROGRAM and 8 * cols <= 5 * width:
        width //= 8
        chunks = triton.cdiv(cols, width)
        warps = min(max(width // 256, 4), 32)
    else:
        warps = min(max(together * width // ELEMENTS_A_WARP, 1), 32)
    rmsnorm_quant_kernel[(triton.cdiv(rows, together),)](
        x, weight, q, scale, eps, rows, cols,
        ROWS=together, WIDTH=width, CHUNKS=chunks, num_warps=warps,
    )  # fmt: skip
