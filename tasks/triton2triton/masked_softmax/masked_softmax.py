"""Softmax of masked scores: one program for 8 rows, which walks over all their columns twice."""

import triton
import triton.language as tl


@triton.jit
def masked_softmax_kernel(
    x, length, y, scale, heads, seq, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr
):
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    query = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    row = (head * seq + query)[:, None] * seq
    end = tl.minimum(query + 1, tl.load(length + head // heads))
    end = tl.where(query < seq, end, 0)
    peak = tl.full((BLOCK_Q,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    for start in range(0, seq, BLOCK_K):
        key = start + tl.arange(0, BLOCK_K)
        seen = key[None, :] < end[:, None]
        value = tl.load(x + row + key[None, :], mask=seen, other=float("-inf")).to(tl.float32)
        value *= scale
        higher = tl.maximum(peak, tl.max(value, axis=1))
        safe = tl.where(higher > float("-inf"), higher, 0.0)
        total = total * tl.exp(peak - safe) + tl.sum(tl.exp(value - safe[:, None]), axis=1)
        peak = higher
    peak = tl.where(query < seq, peak, 0.0)
    total = tl.where(query < seq, total, 1.0)
    for start in range(0, seq, BLOCK_K):
        key = start + tl.arange(0, BLOCK_K)
        seen = key[None, :] < end[:, None]
        value = tl.load(x + row + key[None, :], mask=seen, other=float("-inf")).to(tl.float32)
        share = tl.exp(value * scale - peak[:, None]) / total[:, None]
        inside = (query < seq)[:, None] & (key < seq)[None, :]
        tl.store(y + row + key[None, :], share, mask=inside)


def masked_softmax(x, length, y, *, scale, batch, heads, seq):
    """Write the softmax of the visible scores of x [batch, heads, seq, seq] into y."""
    masked_softmax_kernel[(batch * heads, triton.cdiv(seq, 8))](
        x, length, y, scale, heads, seq,
        BLOCK_Q=8, BLOCK_K=min(256, triton.next_power_of_2(seq)), num_warps=4,
    )  # fmt: skip
