"""Oracle of the group_norm_backward task: gradients with whole groups as rows."""

import torch

EPS = 1e-5


def inputs(config, generator):
    """Draw images with a mean and a spread a channel, weights near 1, and gradients by image.

    mean and rstd are those of x as it is stored.
    """
    batch, groups, width, pixels = (config[k] for k in ("batch", "groups", "width", "pixels"))
    channels, dtype = groups * width, config["dtype"]
    spread = 0.3 + 2.0 * torch.rand(channels, 1, generator=generator)
    offset = torch.randn(channels, 1, generator=generator)
    x = offset + spread * torch.randn(batch, channels, pixels, generator=generator)
    x = x.to(dtype)
    rows = x.double().reshape(batch, groups, -1)
    size = 0.2 + torch.rand(batch, 1, 1, generator=generator)
    slant = 0.3 * torch.randn(channels, 1, generator=generator)
    dy = size * (slant + torch.randn(batch, channels, pixels, generator=generator))
    weight = 1.0 + 0.3 * torch.randn(channels, generator=generator)
    return {
        "x": x,
        "weight": weight.to(dtype),
        "mean": rows.mean(dim=-1).float(),
        "rstd": (rows.var(dim=-1, unbiased=False) + EPS).rsqrt().float(),
        "dy": dy.to(dtype),
    }


def reference(x, weight, mean, rstd, dy, groups, **_):
    """Return dx [batch, channels, pixels], and dweight and dbias [channels]."""
    batch = x.shape[0]
    rows = x.reshape(batch, groups, -1)
    normal = (rows - mean[..., None]) * rstd[..., None]
    gradient = (dy * weight[:, None]).reshape(batch, groups, -1)
    along = (gradient * normal).mean(dim=-1, keepdim=True)
    dx = rstd[..., None] * (gradient - gradient.mean(dim=-1, keepdim=True) - normal * along)
    return {
        "dx": dx.reshape(x.shape),
        "dweight": (dy * normal.reshape(x.shape)).sum(dim=(0, 2)),
        "dbias": dy.sum(dim=(0, 2)),
    }
