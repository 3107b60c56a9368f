"""Oracle of the cross_entropy task: log-sum-exp less the target's logit."""

import torch


def inputs(config, generator):
    """Draw logits [rows, vocab] with an offset a row, and targets, about 1 in 10 ignored.

    Offsets up to 100 overflow an exponential without the maximum taken off. On request
    some tokens are banned where they are not the target.
    """
    rows, vocab = config["rows"], config["vocab"]
    offset = 200.0 * torch.rand(rows, 1, generator=generator) - 100.0
    logits = 4.0 * torch.randn(rows, vocab, generator=generator) + offset
    target = torch.randint(0, vocab, (rows,), generator=generator)
    own = logits.gather(1, target[:, None])
    bans = config.get("distribution") == "banned"
    banned = torch.rand(vocab, generator=generator) < 0.1 * bans
    logits = logits.masked_fill(banned, -torch.inf).scatter(1, target[:, None], own)
    ignored = torch.rand(rows, generator=generator) < 0.1
    target[ignored] = config["ignore_index"]
    return {"logits": logits.to(config["dtype"]), "target": target}


def reference(logits, target, ignore_index, **_):
    """Return loss [rows]."""
    ignored = target == ignore_index
    chosen = logits.gather(1, target.masked_fill(ignored, 0)[:, None])[:, 0]
    loss = torch.logsumexp(logits, dim=1) - chosen
    return {"loss": loss.masked_fill(ignored, 0.0)}
