"""Oracle of the group_norm task: centred groups over their spread, through SiLU."""

import torch


def inputs(config, generator):
    """Draw feature maps whose channels have scales and offsets, and whose neighbours differ.

    Pixels lie on two sides of their group's offset, so that no group is nearly constant. Up to one
    in a hundred is an outlier, about 64 in a large group, and these make up half of the variance:
    of many pixels that are alike, a part would tell the figures of all.
    """
    batch, groups, width, pixels = (config[k] for k in ("batch", "groups", "width", "pixels"))
    channels, dtype = groups * width, config["dtype"]
    scale = 0.3 + 2.0 * torch.rand(batch, groups, 1, 1, generator=generator)
    offset = 5.0 * scale * (2.0 * torch.rand(batch, groups, 1, 1, generator=generator) - 1.0)
    side = 1.0 - 2.0 * ((torch.arange(pixels) + torch.arange(width)[:, None]) % 2)
    x = side + torch.randn(batch, groups, width, pixels, generator=generator)
    rare = min(0.01, 64 / (width * pixels))
    outlier = torch.rand(batch, groups, width, pixels, generator=generator) < rare
    x = torch.where(outlier, rare**-0.5 * x, x) * scale + offset
    return {
        "x": x.reshape(batch, channels, pixels).to(dtype),
        "weight": (1.0 + 0.2 * torch.randn(channels, generator=generator)).to(dtype),
        "bias": (0.3 * torch.randn(channels, generator=generator)).to(dtype),
    }


def reference(x, weight, bias, eps, groups, **_):
    """Return y [batch, groups * width, pixels]."""
    grouped = x.unflatten(1, (groups, -1))
    variance, mean = torch.var_mean(grouped, dim=(2, 3), correction=0, keepdim=True)
    normal = ((grouped - mean) * torch.rsqrt(variance + eps)).flatten(1, 2)
    normal = normal * weight[:, None] + bias[:, None]
    return {"y": normal * torch.sigmoid(normal)}
