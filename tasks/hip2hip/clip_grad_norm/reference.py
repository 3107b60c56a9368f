"""Oracle of the clip_grad_norm task: the norm of the whole vector, and its share of the limit."""

import torch


def inputs(config, generator):
    """Draw gradients of layers of different sizes, whose norm is between a half and four.

    In some draws nothing is clipped.
    """
    n = config["n"]
    layers = 1 + min(n, 16)
    of_layer = 10.0 ** (2.0 * torch.rand(layers, generator=generator) - 2.0)
    size = of_layer[torch.arange(n) * layers // n]
    grad = size * torch.randn(n, generator=generator)
    wanted = 0.5 + 3.5 * torch.rand(1, generator=generator)
    return {"grad": (grad / grad.double().norm() * wanted).to(config["dtype"])}


def reference(grad, limit, **_):
    """Return clipped [n] and norm [1]."""
    norm = torch.linalg.vector_norm(grad).reshape(1)
    return {"clipped": grad * (limit / (norm + 1e-6)).clamp_max(1.0), "norm": norm}
