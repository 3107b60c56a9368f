"""Oracle of the rmsnorm_backward task: gradients written with the normalised rows."""

import torch

EPS = 1e-6


def inputs(config, generator):
    """Draw activations with a scale a row, weight near 1, and gradients that differ in size by row.

    rstd [rows] is that of x as it is stored.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    scale = 0.2 + 3.0 * torch.rand(rows, 1, generator=generator)
    x = (scale * torch.randn(rows, cols, generator=generator)).to(dtype)
    weight = (1.0 + 0.2 * torch.randn(cols, generator=generator)).to(dtype)
    size = 0.1 + torch.rand(rows, 1, generator=generator)
    dy = (size * torch.randn(rows, cols, generator=generator)).to(dtype)
    rstd = torch.rsqrt(x.double().square().mean(dim=-1) + EPS).float()
    return {"x": x, "weight": weight, "rstd": rstd, "dy": dy}


def reference(x, weight, rstd, dy, **_):
    """Return dx [rows, cols] and dweight [cols]."""
    normal = x * rstd[:, None]
    gradient = dy * weight
    along = (gradient * normal).mean(dim=-1, keepdim=True)
    return {
        "dx": rstd[:, None] * (gradient - normal * along),
        "dweight": (dy * normal).sum(dim=0),
    }
