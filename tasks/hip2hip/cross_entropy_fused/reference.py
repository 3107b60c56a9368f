"""Oracle of the cross_entropy_fused task: the loss in closed form, and its derivative."""

import torch


def inputs(config, generator):
    """Draw logits with an offset a row, of rows that are sure and unsure; 1 in 10 is ignored."""
    rows, vocab = config["rows"], config["vocab"]
    offset = 30.0 * torch.rand(rows, 1, generator=generator) - 15.0
    spread = 1.0 + 3.0 * torch.rand(rows, 1, generator=generator)
    logits = spread * torch.randn(rows, vocab, generator=generator) + offset
    target = torch.randint(0, vocab, (rows,), generator=generator)
    target[torch.rand(rows, generator=generator) < 0.1] = config["ignore_index"]
    return {"logits": logits.to(config["dtype"]), "target": target}


def reference(logits, target, smoothing, z, ignore_index, vocab, **_):
    """Return loss [rows] and dlogits [rows, vocab]."""
    ignored = target == ignore_index
    place = target.masked_fill(ignored, 0)[:, None]
    lse = torch.logsumexp(logits, dim=-1, keepdim=True)
    label = torch.full_like(logits, smoothing / vocab)
    label.scatter_add_(1, place, torch.full_like(lse, 1.0 - smoothing))
    loss = lse - (label * logits).sum(dim=-1, keepdim=True) + z * lse.square()
    gradient = (1.0 + 2.0 * z * lse) * torch.exp(logits - lse) - label
    return {
        "loss": loss[:, 0].masked_fill(ignored, 0.0),
        "dlogits": gradient.masked_fill(ignored[:, None], 0.0),
    }
