"""Oracle of the argmax task: the first column that holds the row's maximum."""

import torch


def inputs(config, generator):
    """Draw logits whose best tokens are close: in a third of the rows several are the largest.

    In another third the others are smaller by a few steps of float32, or equal in a smaller dtype.
    They are a power of two apart, so that kernels that walk in strides meet them in one lane. In a
    fifth of the rows nothing is above zero, and zeros, mostly of both signs, are the largest. On
    request some tokens are banned, and one row of several has nothing else.
    """
    rows, vocab = config["rows"], config["vocab"]
    logits = 3.0 * torch.randn(rows, vocab, generator=generator)
    peak = logits.amax(dim=-1, keepdim=True).abs() + 1.0
    bans = config.get("distribution") == "banned"
    banned = torch.rand(vocab, generator=generator) < 0.1 * bans
    logits = logits.masked_fill(banned, -torch.inf)
    first = torch.randint(0, vocab, (rows, 1), generator=generator)
    apart = 2 ** torch.randint(5, 14, (rows, 1), generator=generator)
    kind = torch.randint(0, 3, (rows, 1), generator=generator)
    close = torch.where(kind == 0, peak, peak * (1 - 2**-22))
    after = torch.arange(vocab) - first
    logits = torch.where((kind < 2) & (after >= 0) & (after % apart == 0), close, logits)
    logits = logits.scatter(1, first, peak)
    zero = torch.where(torch.rand(rows, vocab, generator=generator) < 0.5, 0.0, -0.0)
    few = torch.rand(rows, vocab, generator=generator) < min(0.5, 4.0 / vocab)
    below = torch.where(few & ~banned, zero, -logits.abs())
    logits = torch.where(torch.rand(rows, 1, generator=generator) < 0.2, below, logits)
    if bans and rows > 1:
        logits[torch.randint(0, rows, (1,), generator=generator)] = -torch.inf
    return {"logits": logits.to(config["dtype"])}


def reference(logits, vocab, **_):
    """Return token [rows], i64, and peak [rows]."""
    peak = logits.amax(dim=-1, keepdim=True)
    column = torch.arange(vocab, device=logits.device)
    token = torch.where(logits == peak, column, vocab).amin(dim=-1)
    return {"token": token, "peak": peak[:, 0]}
