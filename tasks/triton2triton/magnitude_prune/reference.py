"""Oracle of the magnitude_prune task: PyTorch's k-th smallest of all magnitudes."""

import torch


def inputs(config, generator):
    """Draw weights of sixteen layers whose scales differ by two orders of magnitude, and keep.

    Weights have heavier tails than a normal distribution. From a tenth to six tenths are kept.
    """
    n = config["n"]
    scale = 0.05 * 100.0 ** torch.rand(16, generator=generator)
    layer = torch.arange(n) * 16 // n
    tail = 0.5 + torch.rand(n, generator=generator) ** 2
    weight = scale[layer] * tail * torch.randn(n, generator=generator)
    share = 0.1 + 0.5 * torch.rand(1, generator=generator)
    return {
        "weight": weight.to(config["dtype"]),
        "keep": (share * n).long().clamp(1, n).to(torch.int32),
    }


def reference(weight, keep, n, **_):
    """Return pruned [n] and threshold [1]."""
    size = weight.abs()
    threshold = size.kthvalue(n + 1 - int(keep)).values
    return {"pruned": torch.where(size >= threshold, weight, 0.0), "threshold": threshold[None]}
