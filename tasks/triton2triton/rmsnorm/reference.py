"""Oracle of the rmsnorm task: rows over their root mean square."""

import torch


def inputs(config, generator):
    """Draw x [rows, cols] with a scale of its own in each row, and weight [cols] near 1."""
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    scale = 0.05 + 3.0 * torch.rand(rows, 1, generator=generator)
    x = scale * torch.randn(rows, cols, generator=generator)
    weight = 1.0 + 0.2 * torch.randn(cols, generator=generator)
    return {"x": x.to(dtype), "weight": weight.to(dtype)}


def reference(x, weight, eps, **_):
    """Return y [rows, cols]."""
    scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    return {"y": x * scale * weight}
