"""Oracle of the linear_cross_entropy task: all logits, and PyTorch's logsumexp."""

import torch


def inputs(config, generator):
    """Draw the last layer's input and a vocabulary whose rows differ in size, and targets.

    Each row of x leans towards its target's weight, by another amount: some tokens are known well.
    """
    rows, vocab, width = config["rows"], config["vocab"], config["width"]
    dtype = config["dtype"]
    size = (0.5 + torch.rand(vocab, 1, generator=generator)) / width**0.5
    weight = size * (0.1 + torch.randn(vocab, width, generator=generator))
    likely = 1.0 / (1.0 + torch.arange(vocab, dtype=torch.float32))
    target = torch.multinomial(likely, rows, replacement=True, generator=generator)
    known = 6.0 * torch.rand(rows, 1, generator=generator)
    x = 1.5 * torch.randn(rows, width, generator=generator) + known * weight[target]
    return {"x": x.to(dtype), "weight": weight.to(dtype), "target": target.to(torch.int32)}


def reference(x, weight, target, **_):
    """Return lse and picked [rows]."""
    logits = x @ weight.T
    picked = logits.gather(1, target.long()[:, None])[:, 0]
    return {"lse": torch.logsumexp(logits, dim=-1), "picked": picked}
