"""Embeddings of an encoder in one pass: their sum stays in registers until it is normalised.

Short rows share a program. The tables stay in the cache: y is what memory has to take.
"""

import triton
import triton.language as tl

ELEMENTS_A_PROGRAM = 2048
ELEMENTS_A_WARP = 512


@triton.jit
def embeddings_kernel(
    token, segment, word, place, kind, weight, bias, y, mean, rstd, eps, rows, seq, cols,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    known = row < rows
    col = tl.arange(0, BLOCK)
    inside = known[:, None] & (col < cols)[None, :]
    own = tl.load(token + row, mask=known, other=0)[:, None] * cols  # below 2^30
    of_kind = tl.load(segment + row, mask=known, other=0)[:, None] * cols
    value = tl.load(word + own + col[None, :], mask=inside, other=0.0).to(tl.float32)
    added = tl.load(place + (row % seq)[:, None] * cols + col[None, :], mask=inside, other=0.0)
    value += added.to(tl.float32)
    added = tl.load(kind + of_kind + col[None, :], mask=inside, other=0.0)
    value += added.to(tl.float32)
    gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    shift = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)
    centre = tl.sum(value, axis=1) / cols
    apart = tl.where(inside, value - centre[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, axis=1) / cols + eps)
    at = row.to(tl.int64)[:, None] * cols + col[None, :]
    result = apart * scale[:, None] * gain[None, :] + shift[None, :]
    tl.store(y + at, result, mask=inside, eviction_policy="evict_first")
    tl.store(mean + row, centre, mask=known)
    tl.store(rstd + row, scale, mask=known)


def bert_embeddings(
    token, segment, word, place, kind, weight, bias, y, mean, rstd,
    *, eps, batch, seq, cols, vocab, places, kinds,
):  # fmt: skip
    """Write the normalised embeddings y [batch, seq, cols] and the statistics of their rows."""
    rows, block = batch * seq, triton.next_power_of_2(cols)
    together = max(1, min(ELEMENTS_A_PROGRAM // block, triton.next_power_of_2(rows)))
    embeddings_kernel[(triton.cdiv(rows, together),)](
        token, segment, word, place, kind, weight, bias, y, mean, rstd, eps, rows, seq, cols,
        ROWS=together, BLOCK=block, num_warps=max(together * block // ELEMENTS_A_WARP, 1),
    )  # fmt: skip
