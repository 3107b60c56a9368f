"""Oracle of the rmsnorm task: rows divided by the root of their mean square."""

import torch


def inputs(config, generator):
    """Draw a residual stream with a size a row and a few large columns, and weights around zero."""
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    size = 0.2 + 3.0 * torch.rand(rows, 1, generator=generator)
    large = torch.where(torch.rand(cols, generator=generator) < 0.01, 10.0, 1.0)
    x = size * large * torch.randn(rows, cols, generator=generator)
    weight = 0.3 * torch.randn(cols, generator=generator)
    return {"x": x.to(dtype), "weight": weight.to(dtype)}


def reference(x, weight, eps, offset, **_):
    """Return y [rows, cols] and rstd [rows]."""
    root = (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return {"y": x / root * (offset + weight), "rstd": 1.0 / root[:, 0]}
