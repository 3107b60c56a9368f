"""Oracle of the linear_gelu task: a product, the bias, and GELU."""

import torch


def inputs(config, generator):
    """Draw normalised activations with large columns, weights of trained sizes, and a bias.

    Rows of the weight differ in size and most biases are below zero, so that many units are off.
    """
    m, n, k, dtype = config["m"], config["n"], config["k"], config["dtype"]
    loud = 1.0 + 4.0 * (torch.rand(k, generator=generator) < 0.02)
    x = loud * torch.randn(m, k, generator=generator)
    size = (0.4 + torch.rand(n, 1, generator=generator)) / k**0.5
    weight = size * torch.randn(n, k, generator=generator)
    bias = 0.4 * torch.randn(n, generator=generator) - 0.3
    return {"x": x.to(dtype), "weight": weight.to(dtype), "bias": bias.to(dtype)}


def reference(x, weight, bias, **_):
    """Return u and y [m, n]."""
    u = torch.addmm(bias, x, weight.T)
    return {"u": u, "y": torch.nn.functional.gelu(u)}
