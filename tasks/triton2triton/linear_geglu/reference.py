"""Oracle of the linear_geglu task: both halves by PyTorch, and its GELU."""

import torch
from torch.nn.functional import gelu, linear


def inputs(config, generator):
    """Draw rows of a layer normalisation, weights that keep sizes, and biases.

    Some columns of x are large, and gates of some columns are mostly closed.
    """
    rows, n, k, dtype = config["rows"], config["n"], config["k"], config["dtype"]
    large = torch.where(torch.rand(k, generator=generator) < 0.03, 5.0, 1.0)
    x = large * (0.2 + torch.randn(rows, k, generator=generator))
    size = (0.5 + torch.rand(2 * n, 1, generator=generator)) * k**-0.5
    weight = size * torch.randn(2 * n, k, generator=generator)
    bias = 0.5 * torch.randn(2 * n, generator=generator)
    bias[n:] -= 2.0 * (torch.rand(n, generator=generator) < 0.3)
    return {"x": x.to(dtype), "weight": weight.to(dtype), "bias": bias.to(dtype)}


def reference(x, weight, bias, **_):
    """Return y [rows, n]."""
    u, gate = linear(x, weight, bias).chunk(2, dim=-1)
    return {"y": u * gelu(gate)}
