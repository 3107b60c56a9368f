"""Oracle of the bias_gelu_backward task: the normal distribution and its density."""

import math

import torch


def inputs(config, generator):
    """Draw pre-activations x [rows, cols] that reach both tails, bias [cols] and dy [rows, cols].

    A bias moves a whole column, so that columns differ in how many elements are in each tail.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    x = 1.5 * torch.randn(rows, cols, generator=generator)
    bias = torch.randn(cols, generator=generator)
    size = 0.1 + torch.rand(rows, 1, generator=generator)
    dy = size * torch.randn(rows, cols, generator=generator)
    return {"x": x.to(dtype), "bias": bias.to(dtype), "dy": dy.to(dtype)}


def reference(x, bias, dy, **_):
    """Return dx [rows, cols] and dbias [cols]."""
    u = x + bias
    density = torch.exp(-0.5 * u.square()) / math.sqrt(2.0 * math.pi)
    dx = dy * (torch.special.ndtr(u) + u * density)
    return {"dx": dx, "dbias": dx.sum(dim=0)}
