"""Policy-gradient loss: one program a row counts its tokens, then adds their terms."""

import triton
import triton.language as tl


@triton.jit
def ppo_loss_kernel(
    logp, old, ref, mask, advantage, loss, dlogp, used, low, high, beta, seq, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    gain = tl.load(advantage + row)
    seen = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, seq, BLOCK):
        i = start + tl.arange(0, BLOCK)
        seen += tl.load(mask + row * seq + i, mask=i < seq, other=0).to(tl.int32)
    count = tl.sum(seen, axis=0)
    share = 1.0 / tl.maximum(count, 1).to(tl.float32)
    terms = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, seq, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < seq
        place = row * seq + i
        counts = tl.load(mask + place, mask=inside, other=0) > 0
        own = tl.load(logp + place, mask=inside, other=0.0)
        step = own - tl.load(old + place, mask=inside, other=0.0)
        away = tl.load(ref + place, mask=inside, other=0.0) - own
        ratio = tl.exp(tl.minimum(tl.maximum(step, -20.0), 20.0))
        free = ratio * gain
        held = tl.minimum(tl.maximum(ratio, 1.0 - low), 1.0 + high) * gain
        bounded = tl.minimum(tl.maximum(away, -20.0), 20.0)
        grown = tl.exp(bounded)
        token = beta * (grown - bounded - 1.0) - tl.minimum(free, held)
        terms += tl.where(counts, token, 0.0)
        slope = tl.where((free <= held) & (tl.abs(step) <= 20.0), -free, 0.0)
        slope += tl.where(tl.abs(away) <= 20.0, beta * (1.0 - grown), 0.0)
        tl.store(dlogp + place, tl.where(counts, slope * share, 0.0), mask=inside)
    tl.store(loss + row, tl.sum(terms, axis=0) * share)
    tl.store(used + row, count)


def ppo_loss(logp, old, ref, mask, advantage, loss, dlogp, used, *, low, high, beta, rows, seq):
    """Write loss [rows], its gradient dlogp [rows, seq], and how many tokens count."""
    ppo_loss_kernel[(rows,)](
        logp, old, ref, mask, advantage, loss, dlogp, used, low, high, beta, seq,
        BLOCK=1024, num_warps=4,
    )  # fmt: skip
