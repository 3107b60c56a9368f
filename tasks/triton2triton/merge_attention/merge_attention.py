"""Parts of attention put together: one program for each head of each token."""

import triton
import triton.language as tl


@triton.jit
def merge_kernel(y, lse, merged, lse_new, parts, rows, dim, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # a head of a token
    column = tl.arange(0, BLOCK)
    largest = tl.load(lse + row)
    for part in range(1, parts):
        largest = tl.maximum(largest, tl.load(lse + part * rows + row))
    total = 0.0
    result = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(parts):
        place = part * rows + row
        share = tl.exp(tl.load(lse + place) - largest)
        value = tl.load(y + place * dim + column, mask=column < dim, other=0.0).to(tl.float32)
        result += share * value
        total += share
    tl.store(merged + row * dim + column, result / total, mask=column < dim)
    tl.store(lse_new + row, largest + tl.log(total))


def merge_attention(y, lse, merged, lse_new, *, parts, tokens, heads, dim):
    """Write merged [tokens, heads, dim] and lse_new [tokens, heads]."""
    rows = tokens * heads
    merge_kernel[(rows,)](
        y, lse, merged, lse_new, parts, rows, dim, BLOCK=triton.next_power_of_2(dim), num_warps=1
    )
