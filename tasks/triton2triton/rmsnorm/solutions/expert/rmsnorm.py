"""RMS normalisation: device memory is read once.

Short rows share a program, so that a program always moves a few thousand elements, and stay in
registers between the sum and the scaling. A longer row, where it is aligned, is read again from the
cache instead: registers are few, and more programs then wait for memory at once. Rows of more than
32768 columns are walked twice in large blocks.
"""

import triton
import triton.language as tl

LONGEST_BLOCK = 32768
SHORTEST_READ_AGAIN = 2048
ELEMENTS_A_PROGRAM = 4096


@triton.jit
def short_rows(x, weight, y, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    at = row.to(tl.int64)[:, None] * cols + col[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / cols + eps)
    tl.store(y + at, value * scale[:, None] * gain[None, :], mask=inside)


@triton.jit
def whole_rows(x, weight, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * cols
    y += row * cols
    col = tl.arange(0, BLOCK)
    inside = col < cols
    value = tl.load(x + col, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / cols + eps)
    tl.debug_barrier()  # lest the compiler takes the two loads for one
    value = tl.load(x + col, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
    gain = tl.load(weight + col, mask=inside, other=0.0, eviction_policy="evict_last")
    tl.store(y + col, value * scale * gain.to(tl.float32), mask=inside)


@triton.jit
def long_rows(x, weight, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * cols
    y += row * cols
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(x + col, mask=col < cols, other=0.0, eviction_policy="evict_last")
        squares += value.to(tl.float32) * value.to(tl.float32)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + col, mask=inside, other=0.0, eviction_policy="evict_first")
        gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + col, value.to(tl.float32) * scale * gain, mask=inside)


def rmsnorm(x, weight, y, *, eps, rows, cols):
    """Normalise x [rows, cols] into y."""
    if cols > LONGEST_BLOCK:
        long_rows[(rows,)](x, weight, y, cols, eps, BLOCK=8192, num_warps=16)
        return
    block = triton.next_power_of_2(cols)
    size = x.element_size()
    if cols >= SHORTEST_READ_AGAIN and cols * size % 16 == 0:
        warps = min(block * size // 1024, 32)
        whole_rows[(rows,)](x, weight, y, cols, eps, BLOCK=block, num_warps=warps)
        return
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    warps = min(max(together * block // (512 if cols >= 8192 else 1024), 1), 16)
    grid = (triton.cdiv(rows, together),)
    short_rows[grid](
        x, weight, y, rows, cols, eps, ROWS=together, BLOCK=block, num_warps=warps
    )  # fmt: skip
