"""Oracle of the cross_entropy_backward task: probabilities less the target's."""

import torch


def inputs(config, generator):
    """Draw logits with an offset a row, of rows that are sure and unsure of their token.

    About 1 row in 10 is ignored. The others' gradients differ by row, as those of weighted
    tokens do. On request some tokens are banned where they are not the target.
    """
    rows, vocab, dtype = config["rows"], config["vocab"], config["dtype"]
    offset = 40.0 * torch.rand(rows, 1, generator=generator) - 20.0
    spread = 1.0 + 3.0 * torch.rand(rows, 1, generator=generator)
    logits = (spread * torch.randn(rows, vocab, generator=generator) + offset).to(dtype)
    target = torch.randint(0, vocab, (rows,), generator=generator)
    own = logits.gather(1, target[:, None])
    bans = config.get("distribution") == "banned"
    banned = torch.rand(vocab, generator=generator) < 0.1 * bans
    logits = logits.masked_fill(banned, -torch.inf).scatter(1, target[:, None], own)
    target[torch.rand(rows, generator=generator) < 0.1] = config["ignore_index"]
    return {
        "logits": logits,
        "target": target,
        "lse": torch.logsumexp(logits.double(), dim=-1).float(),
        "dloss": 0.2 + torch.rand(rows, generator=generator),
    }


def reference(logits, target, lse, dloss, ignore_index, **_):
    """Return dlogits [rows, vocab]."""
    ignored = target == ignore_index
    place = target.masked_fill(ignored, 0)[:, None]
    gradient = torch.exp(logits - lse[:, None])
    gradient.scatter_add_(1, place, torch.full_like(gradient[:, :1], -1.0))
    gradient = gradient * dloss[:, None]
    return {"dlogits": gradient.masked_fill(ignored[:, None], 0.0)}
