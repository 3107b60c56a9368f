"""Oracle of the layernorm_backward task: gradients written with the normalised rows."""

import torch

EPS = 1e-5


def inputs(config, generator):
    """Draw activations with a scale and an offset a row; mean and rstd [rows] are theirs.

    Neighbours lie on two sides of the row's offset, so that no row is nearly constant.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    scale = 0.2 + 2.0 * torch.rand(rows, 1, generator=generator)
    offset = scale * (4.0 * torch.rand(rows, 1, generator=generator) - 2.0)
    side = 1.0 - 2.0 * (torch.arange(cols) % 2)
    x = (side + torch.randn(rows, cols, generator=generator)) * scale + offset
    x = x.to(dtype)
    weight = (1.0 + 0.2 * torch.randn(cols, generator=generator)).to(dtype)
    size = 0.1 + torch.rand(rows, 1, generator=generator)
    dy = (size * torch.randn(rows, cols, generator=generator)).to(dtype)
    exact = x.double()
    rstd = torch.rsqrt(exact.var(dim=-1, correction=0) + EPS)
    return {
        "x": x,
        "weight": weight,
        "mean": exact.mean(dim=-1).float(),
        "rstd": rstd.float(),
        "dy": dy,
    }


def reference(x, weight, mean, rstd, dy, **_):
    """Return dx [rows, cols], dweight [cols] and dbias [cols]."""
    normal = (x - mean[:, None]) * rstd[:, None]
    gradient = dy * weight
    along = (gradient * normal).mean(dim=-1, keepdim=True)
    centred = gradient - gradient.mean(dim=-1, keepdim=True)
    return {
        "dx": rstd[:, None] * (centred - normal * along),
        "dweight": (dy * normal).sum(dim=0),
        "dbias": dy.sum(dim=0),
    }
