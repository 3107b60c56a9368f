"""Oracle of the focal_loss task: both kinds of terms by log-sigmoids, the gradient by hand."""

import torch
from torch.nn import functional


def inputs(config, generator):
    """Draw logits of rare objects: most are far below zero, those of targets are higher.

    About 1 anchor in 20 has an object, and 1 in 30 does not count.
    """
    anchors, classes = config["anchors"], config["classes"]
    logits = 1.5 * torch.randn(anchors, classes, generator=generator) - 2.0
    target = torch.randint(0, classes, (anchors,), generator=generator)
    kind = torch.rand(anchors, generator=generator)
    better = 3.0 * torch.randn(anchors, 1, generator=generator) + 3.0
    own = functional.one_hot(target, classes) * (kind < 0.05)[:, None]
    logits = logits + own * better
    target = target.masked_fill(kind >= 0.05, classes).masked_fill(kind > 1.0 - 1 / 30, -1)
    return {
        "logits": logits.to(config["dtype"]),
        "target": target.to(torch.int32),
        "factor": 0.5 + torch.rand(1, generator=generator),
    }


def reference(logits, target, factor, alpha, classes, **_):
    """Return loss [anchors] and dlogits [anchors, classes]."""
    own = target[:, None] == torch.arange(classes, device=logits.device)
    sign = torch.where(own, -1.0, 1.0).to(logits.dtype)
    weight = torch.where(own, alpha, 1.0 - alpha).to(logits.dtype)
    weight = weight.masked_fill((target < 0)[:, None], 0.0)
    wrong = torch.sigmoid(sign * logits)
    surprise = -functional.logsigmoid(-sign * logits)
    slope = 2 * wrong.square() * torch.sigmoid(-sign * logits) * surprise + wrong**3
    return {
        "loss": (weight * wrong.square() * surprise).sum(dim=-1),
        "dlogits": factor * sign * weight * slope,
    }
