"""Oracle of the cross_entropy_backward task: losses, and probabilities less the target's."""

import torch


def inputs(config, generator):
    """Draw logits with an offset a row, of rows that are sure and unsure of their token.

    The largest are far beyond the cap. About 1 row in 10 is ignored. The others' gradients differ
    by row, as those of weighted tokens do.
    """
    rows, vocab, dtype = config["rows"], config["vocab"], config["dtype"]
    offset = 40.0 * torch.rand(rows, 1, generator=generator) - 20.0
    spread = 1.0 + 7.0 * torch.rand(rows, 1, generator=generator)
    logits = (spread * torch.randn(rows, vocab, generator=generator) + offset).to(dtype)
    target = torch.randint(0, vocab, (rows,), generator=generator)
    target[torch.rand(rows, generator=generator) < 0.1] = config["ignore_index"]
    dloss = 0.2 + torch.rand(rows, generator=generator)
    return {"logits": logits, "target": target, "dloss": dloss}


def reference(logits, target, dloss, cap, ignore_index, **_):
    """Return loss [rows] and dlogits [rows, vocab]."""
    ignored = target == ignore_index
    place = target.masked_fill(ignored, 0)[:, None]
    inner = torch.tanh(logits / cap)
    loss = torch.logsumexp(cap * inner, dim=1) - cap * inner.gather(1, place)[:, 0]
    gradient = torch.softmax(cap * inner, dim=1)
    gradient.scatter_add_(1, place, torch.full_like(gradient[:, :1], -1.0))
    gradient = gradient * dloss[:, None] * (1.0 - inner * inner)
    return {
        "loss": loss.masked_fill(ignored, 0.0),
        "dlogits": gradient.masked_fill(ignored[:, None], 0.0),
    }
