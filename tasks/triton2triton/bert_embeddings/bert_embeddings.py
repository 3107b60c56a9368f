"""Embeddings of an encoder in two kernels: the sum into a buffer, then its normalisation."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(token, segment, word, place, kind, embedded, seq, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    own = tl.load(token + row).to(tl.int64)
    of_kind = tl.load(segment + row).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(word + own * cols + col, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(place + row % seq * cols + col, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(kind + of_kind * cols + col, mask=inside, other=0.0).to(tl.float32)
        tl.store(embedded + row * cols + col, value, mask=inside)


@triton.jit
def normalise_kernel(embedded, weight, bias, y, mean, rstd, eps, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < cols
    value = tl.load(embedded + row * cols + col, mask=inside, other=0.0)
    centre = tl.sum(value, axis=0) / cols
    apart = tl.where(inside, value - centre, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, axis=0) / cols + eps)
    gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + col, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * cols + col, apart * scale * gain + shift, mask=inside)
    tl.store(mean + row, centre)
    tl.store(rstd + row, scale)


def bert_embeddings(
    token, segment, word, place, kind, weight, bias, y, mean, rstd,
    *, eps, batch, seq, cols, vocab, places, kinds,
):  # fmt: skip
    """Write the normalised embeddings y [batch, seq, cols] and the statistics of their rows."""
    rows = batch * seq
    embedded = torch.empty((rows, cols), dtype=torch.float32, device=word.device)
    sum_kernel[(rows,)](
        token, segment, word, place, kind, embedded, seq, cols, BLOCK=512, num_warps=4
    )
    normalise_kernel[(rows,)](
        embedded, weight, bias, y, mean, rstd, eps, cols,
        BLOCK=triton.next_power_of_2(cols), num_warps=8,
    )  # fmt: skip
