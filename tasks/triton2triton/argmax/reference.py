"""Oracle of the argmax task: the first column that holds the row's maximum."""

import torch


def inputs(config, generator):
    """Draw logits whose best tokens are close: the largest occurs twice in a third of the rows.

    In another third the second best is smaller by one step of float32, or equal in a smaller
    dtype; either of the two may come first.
    """
    rows, vocab = config["rows"], config["vocab"]
    logits = 3.0 * torch.randn(rows, vocab, generator=generator)
    peak = logits.amax(dim=-1, keepdim=True).abs() + 1.0
    first, second = torch.randint(0, vocab, (2, rows, 1), generator=generator)
    kind = torch.randint(0, 3, (rows, 1), generator=generator)
    rival = torch.where(kind == 0, peak, torch.where(kind == 1, peak * (1 - 2**-22), 0.9 * peak))
    logits.scatter_(1, second, rival).scatter_(1, first, peak)
    return {"logits": logits.to(config["dtype"])}


def reference(logits, vocab, **_):
    """Return token [rows], i64, and peak [rows]."""
    peak = logits.amax(dim=-1, keepdim=True)
    column = torch.arange(vocab, device=logits.device)
    token = torch.where(logits == peak, column, vocab).amin(dim=-1)
    return {"token": token, "peak": peak[:, 0]}
