"""Oracle of the add_rmsnorm task: the sum, and the sum over its root mean square."""

import torch


def inputs(config, generator):
    """Draw a residual stream with a scale of its own in each row, and a block's smaller output."""
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    scale = 0.1 + 4.0 * torch.rand(rows, 1, generator=generator)
    residual = scale * torch.randn(rows, cols, generator=generator)
    x = 0.5 * torch.randn(rows, cols, generator=generator)
    weight = 1.0 + 0.2 * torch.randn(cols, generator=generator)
    return {"x": x.to(dtype), "residual": residual.to(dtype), "weight": weight.to(dtype)}


def reference(x, residual, weight, eps, **_):
    """Return total [rows, cols] and y [rows, cols]."""
    total = x + residual
    norm = torch.linalg.vector_norm(total, dim=-1, keepdim=True)
    return {"total": total, "y": total / torch.sqrt(norm**2 / x.shape[-1] + eps) * weight}
