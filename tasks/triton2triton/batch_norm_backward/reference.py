"""Oracle of the batch_norm_backward task: gradients with the normalised channels."""

import torch

EPS = 1e-5


def inputs(config, generator):
    """Draw a convolution's output, what became of it, and gradients with a size a channel.

    Channels differ in how many of their elements ReLU passed.
    """
    batch, channels, pixels = config["batch"], config["channels"], config["pixels"]
    dtype = config["dtype"]
    scale = 0.3 + 2.0 * torch.rand(channels, 1, generator=generator)
    offset = scale * (3.0 * torch.rand(channels, 1, generator=generator) - 1.5)
    x = (scale * torch.randn(batch, channels, pixels, generator=generator) + offset).to(dtype)
    weight = 1.0 + 0.3 * torch.randn(channels, generator=generator)
    bias = 0.6 * torch.randn(channels, generator=generator)
    exact = x.double().transpose(0, 1).flatten(1)
    mean = exact.mean(dim=1)
    rstd = torch.rsqrt(exact.var(dim=1, correction=0) + EPS)
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    size = 0.2 + torch.rand(channels, 1, generator=generator)
    dy = size * (0.1 + torch.randn(batch, channels, pixels, generator=generator))
    return {
        "x": x,
        "passed": (normal * weight[:, None] + bias[:, None] > 0).to(torch.uint8),
        "weight": weight,
        "mean": mean.float(),
        "rstd": rstd.float(),
        "dy": dy.to(dtype),
    }


def reference(x, passed, weight, mean, rstd, dy, **_):
    """Return dx [batch, channels, pixels], dweight and dbias [channels]."""
    normal = (x - mean[:, None]) * rstd[:, None]
    gradient = dy.masked_fill(passed == 0, 0.0)
    along = (gradient * normal).mean(dim=(0, 2), keepdim=True)
    centred = gradient - gradient.mean(dim=(0, 2), keepdim=True)
    return {
        "dx": (weight * rstd)[:, None] * (centred - normal * along),
        "dweight": (gradient * normal).sum(dim=(0, 2)),
        "dbias": gradient.sum(dim=(0, 2)),
    }
