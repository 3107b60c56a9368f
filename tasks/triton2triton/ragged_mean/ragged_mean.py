"""Mean pooling: one program for each sequence and block of columns, which walks over its rows."""

import triton
import triton.language as tl


@triton.jit
def ragged_mean_kernel(x, offset, y, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    sequence = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    begin = tl.load(offset + sequence)
    end = tl.load(offset + sequence + 1)
    total = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(begin, end, BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        inside = (row < end)[:, None] & (col < cols)[None, :]
        place = row[:, None] * cols + col[None, :]
        total += tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    length = tl.maximum(end - begin, 1).to(tl.float32)
    tl.store(y + sequence * cols + col, tl.sum(total, axis=0) / length, mask=col < cols)


def ragged_mean(x, offset, y, *, tokens, sequences, cols):
    """Write the mean of each sequence of x [tokens, cols] into y [sequences, cols]."""
    ragged_mean_kernel[(sequences, triton.cdiv(cols, 128))](
        x, offset, y, cols, BLOCK_R=8, BLOCK_C=128, num_warps=4
    )
