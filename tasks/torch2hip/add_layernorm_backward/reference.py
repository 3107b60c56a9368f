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


def baseline(h, weight, mean, rstd, dy, dh, cols, **_):
    """PyTorch's own kernel in float32, as sums over rows need it, and an addition."""
    wide = weight.float()
    dx, dweight, dbias = torch.ops.aten.native_layer_norm_backward(
        dy.float(), h.float(), [cols], mean[:, None], rstd[:, None], wide, wide, [True] * 3
    )
    return {"dx": dx.add_(dh).to(h.dtype), "dweight": dweight, "dbias": dbias}
