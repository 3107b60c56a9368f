"""Oracle of the linear_weight_gradient task: one product of transposed matrices."""

import torch


def inputs(config, generator):
    """Draw activations with a few large columns, small gradients of tokens, and earlier sums.

    Gradients have a size a token; earlier sums are as large as what is added.
    """
    tokens, n, k = config["tokens"], config["n"], config["k"]
    loud = 1.0 + 6.0 * (torch.rand(k, generator=generator) < 0.02)
    x = loud * (0.2 + torch.randn(tokens, k, generator=generator))
    size = 0.1 + torch.rand(tokens, 1, generator=generator)
    dy = size * (0.1 + torch.randn(tokens, n, generator=generator))
    before = 0.5 * tokens**0.5 * torch.randn(n, k, generator=generator)
    return {"x": x.to(config["dtype"]), "dy": dy.to(config["dtype"]), "before": before}


def reference(x, dy, before, **_):
    """Return dweight [n, k] and dbias [n]."""
    return {"dweight": torch.addmm(before, dy.T, x), "dbias": dy.sum(dim=0)}
