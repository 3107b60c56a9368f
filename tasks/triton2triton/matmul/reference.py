"""Oracle of the matmul task: PyTorch's product."""

import torch


def inputs(config, generator):
    """Draw a [m, k] and b [k, n], scaled so that c has a spread near 1."""
    m, n, k, dtype = config["m"], config["n"], config["k"], config["dtype"]
    a = torch.randn(m, k, generator=generator)
    b = torch.randn(k, n, generator=generator) / k**0.5
    return {"a": a.to(dtype), "b": b.to(dtype)}


def reference(a, b, **_):
    """Return c [m, n]."""
    return {"c": a @ b}
