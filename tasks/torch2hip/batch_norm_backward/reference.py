"""Oracle and PyTorch baseline of the batch_norm_backward task."""

import torch

EPS = 1e-5


def inputs(config, generator):
    """Draw maps with a mean and a size a channel, and gradients with a size an image.

    mean and rstd are those of x as it is stored. A channel's bias is often below zero, so that
    more than half of the elements have no gradient; gradients have a mean a channel.
    """
    images, channels = config["images"], config["channels"]
    shape = (images, channels, config["height"], config["width"])
    offset = torch.randn(channels, 1, 1, generator=generator)
    size = 0.5 + 1.5 * torch.rand(channels, 1, 1, generator=generator)
    x = (offset + size * torch.randn(shape, generator=generator)).to(config["dtype"])
    exact = x.double()
    steep = 0.2 + torch.rand(images, 1, 1, 1, generator=generator)
    common = 0.5 * torch.randn(channels, 1, 1, generator=generator)
    dy = steep * (common + torch.randn(shape, generator=generator))
    return {
        "x": x,
        "weight": 0.5 + torch.rand(channels, generator=generator),
        "bias": -0.3 + 0.5 * torch.randn(channels, generator=generator),
        "mean": exact.mean(dim=(0, 2, 3)).float(),
        "rstd": torch.rsqrt(exact.var(dim=(0, 2, 3), correction=0) + EPS).float(),
        "dy": dy.to(config["dtype"]),
    }


def reference(x, weight, bias, mean, rstd, dy, **_):
    """Return dx, dweight and dbias."""
    weight, bias, mean, rstd = (t[:, None, None] for t in (weight, bias, mean, rstd))
    normal = (x - mean) * rstd
    g = dy * (normal * weight + bias > 0)
    along = (g * normal).mean(dim=(0, 2, 3), keepdim=True)
    dx = weight * rstd * (g - g.mean(dim=(0, 2, 3), keepdim=True) - normal * along)
    return {
        "dx": dx,
        "dweight": (g * normal).sum(dim=(0, 2, 3)),
        "dbias": g.sum(dim=(0, 2, 3)),
    }


def baseline(x, weight, bias, mean, rstd, dy, **_):
    """PyTorch's own gradient of the normalisation in float32, of what ReLU lets through."""
    wide = x.float()
    factor = weight * rstd
    shown = wide * factor[:, None, None] + (bias - mean * factor)[:, None, None]
    g = torch.where(shown > 0, dy.float(), 0.0)
    dx, dweight, dbias = torch.ops.aten.native_batch_norm_backward(
        g,
        wide,
        weight,
        None,
        None,
        mean,
        rstd,
        True,  # noqa: FBT003 - training
        EPS,
        [True] * 3,
    )
    return {"dx": dx.to(x.dtype), "dweight": dweight, "dbias": dbias}
