"""Oracle of the rmsnorm_quant task: rows over their root mean square, in 127ths of the largest."""

import torch


def inputs(config, generator):
    """Draw activations x [rows, cols] with a scale a row and outliers, and weight [cols] near 1.

    One element in about 200 is up to ten times as large as the others, as in large models.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    scale = 0.05 + 3.0 * torch.rand(rows, 1, generator=generator)
    x = scale * torch.randn(rows, cols, generator=generator)
    outlier = torch.rand(rows, cols, generator=generator) < 0.005
    x = torch.where(outlier, x * 10.0 * torch.rand(rows, 1, generator=generator), x)
    weight = 1.0 + 0.2 * torch.randn(cols, generator=generator)
    return {"x": x.to(dtype), "weight": weight.to(dtype)}


def reference(x, weight, eps, **_):
    """Return q [rows, cols], before it is rounded, and scale [rows]."""
    normal = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps) * weight
    scale = normal.abs().amax(dim=-1, keepdim=True) / 127
    steps = torch.where(scale > 0, normal / scale, 0.0)
    return {"q": steps, "scale": scale[:, 0]}
