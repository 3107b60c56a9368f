"""Oracle and PyTorch baseline of the add_layernorm_backward task."""

import torch

EPS = 1e-5


def inputs(config, generator):
    """Draw a residual stream with an offset and a scale a row, and gradients that differ by row.

    mean and rstd [rows] are those of h as it is stored. dh, which comes back over the residual
    connection, is larger than what the normalisation adds, and has a mean.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    offset = torch.randn(rows, 1, generator=generator)
    scale = 0.3 + 2.0 * torch.rand(rows, 1, generator=generator)
    h = (offset + scale * torch.randn(rows, cols, generator=generator)).to(dtype)
    weight = (1.0 + 0.2 * torch.randn(cols, generator=generator)).to(dtype)
    size = 0.1 + torch.rand(rows, 1, generator=generator)
    dy = size * (0.3 + torch.randn(rows, cols, generator=generator))
    dh = 1.5 * size * torch.randn(rows, cols, generator=generator) + 0.1
    exact = h.double()
    return {
        "h": h,
        "weight": weight,
        "mean": exact.mean(dim=-1).float(),
        "rstd": torch.rsqrt(exact.var(dim=-1, correction=0) + EPS).float(),
        "dy": dy.to(dtype),
        "dh": dh.to(dtype),
    }


def reference(h, weight, mean, rstd, dy, dh, **_):
    """Return dx [rows, cols], dweight and dbias [cols]."""
    normal = (h - mean[:, None]) * rstd[:, None]
    gradient = dy * weight
    along = (gradient * normal).mean(dim=-1, keepdim=True)
    inner = gradient - gradient.mean(dim=-1, keepdim=True) - normal * along
    return {
        "dx": dh + rstd[:, None] * inner,
        "dweight": (dy * normal).sum(dim=0),
        "dbias": dy.sum(dim=0),
    }


def baseline(h, weight, mean, rstd, dy, dh, **_):
    """The formulas in float32, as sums over rows need it.

    PyTorch's own native_layer_norm_backward multiplies h - mean out, and then cancels where the
    mean is large.
    """
    wide = dy.float()
    normal = (h.float() - mean[:, None]) * rstd[:, None]
    gradient = wide * weight.float()
    along = (gradient * normal).mean(dim=-1, keepdim=True)
    inner = gradient - gradient.mean(dim=-1, keepdim=True) - normal * along
    return {
        "dx": (dh + rstd[:, None] * inner).to(h.dtype),
        "dweight": (wide * normal).sum(dim=0),
        "dbias": wide.sum(dim=0),
    }
