"""Cross-entropy: one program a row, which is read for its maximum and again for its sum."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits, target, loss, vocab, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * vocab
    peaks = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(logits + col, mask=col < vocab, other=float("-inf")).to(tl.float32)
        peaks = tl.maximum(peaks, value)
    peak = tl.max(peaks, axis=0)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(logits + col, mask=col < vocab, other=float("-inf")).to(tl.float32)
        sums += tl.exp(value - peak)
    chosen = tl.load(target + row)
    kept = chosen != ignore_index
    picked = tl.load(logits + chosen, mask=kept, other=0.0).to(tl.float32)
    result = peak + tl.log(tl.sum(sums, axis=0)) - picked
    tl.store(loss + row, tl.where(kept, result, 0.0))


def cross_entropy(logits, target, loss, *, ignore_index, rows, vocab):
    """Write the loss of each row of logits [rows, vocab] into loss [rows]."""
    # kabuild:tune BLOCK = 512, 1024, 2048, 4096, 8192
    # kabuild:tune num_warps = 2, 4, 8, 16
    cross_entropy_kernel[(rows,)](
        logits, target, loss, vocab, ignore_index, BLOCK=1024, num_warps=4
    )
