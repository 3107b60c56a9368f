"""Oracle and PyTorch baseline of the dice_loss task."""

import torch
from torch.nn.functional import cross_entropy, one_hot


def inputs(config, generator):
    """Draw targets, mostly background, in runs of any length, and logits that know some of them."""
    images, classes, pixels = config["images"], config["classes"], config["pixels"]
    run = (torch.rand(images, pixels, generator=generator) < 0.05).cumsum(-1)
    drawn = torch.rand(images, int(run.max()) + 1, generator=generator)
    kind = ((drawn - 0.4).clamp_min(0) / 0.6 * classes).long().clamp_max(classes - 1)
    target = kind.gather(-1, run)
    sure = 1.0 + 2.0 * torch.rand(images, classes, 1, generator=generator)
    logits = 1.5 * torch.randn(images, classes, pixels, generator=generator)
    for c in range(classes):
        logits[:, c] += sure[:, c] * (target == c)
    return {"logits": logits.to(config["dtype"]), "target": target.to(torch.uint8)}


def reference(logits, target, classes, **_):
    """Return dice [images, classes] and entropy [images]."""
    known = torch.log_softmax(logits, dim=1)
    p = known.exp()
    right = one_hot(target.long(), classes).to(p.dtype).transpose(1, 2)
    both = (p * right).sum(dim=-1)
    dice = (2 * both + 1) / (p.sum(dim=-1) + right.sum(dim=-1) + 1)
    return {"dice": dice, "entropy": -(known * right).sum(dim=1).mean(dim=-1)}


def baseline(logits, target, classes, **_):
    """PyTorch's softmax in float32, sums of it, and its own cross-entropy."""
    wide, place = logits.float(), target.long()
    p = torch.softmax(wide, dim=1)
    right = place[:, None] == torch.arange(classes, device=logits.device)[:, None]
    both = torch.where(right, p, 0.0).sum(dim=-1)
    dice = (2 * both + 1) / (p.sum(dim=-1) + right.sum(dim=-1) + 1)
    return {"dice": dice, "entropy": cross_entropy(wide, place, reduction="none").mean(dim=-1)}
