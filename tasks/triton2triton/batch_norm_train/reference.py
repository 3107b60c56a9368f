"""Oracle of the batch_norm_train task: statistics of a channel's own matrix."""

import torch


def inputs(config, generator):
    """Draw a convolution's output with a scale and an offset a channel, and earlier averages."""
    batch, channels, pixels = config["batch"], config["channels"], config["pixels"]
    scale = 0.3 + 2.0 * torch.rand(channels, 1, generator=generator)
    offset = scale * (3.0 * torch.rand(channels, 1, generator=generator) - 1.5)
    x = scale * torch.randn(batch, channels, pixels, generator=generator) + offset
    return {
        "x": x.to(config["dtype"]),
        "weight": 1.0 + 0.3 * torch.randn(channels, generator=generator),
        "bias": 0.5 * torch.randn(channels, generator=generator),
        "average": offset[:, 0] + 0.3 * torch.randn(channels, generator=generator),
        "spread": scale[:, 0].square() * (0.5 + torch.rand(channels, generator=generator)),
    }


def reference(x, weight, bias, average, spread, eps, momentum, **_):
    """Return y, mean, rstd and the new averages."""
    of_channel = x.transpose(0, 1).flatten(1)
    mean = of_channel.mean(dim=1)
    var = of_channel.var(dim=1, correction=0)
    count = of_channel.shape[1]
    rstd = torch.rsqrt(var + eps)
    normal = (x - mean[:, None]) * rstd[:, None]
    return {
        "y": torch.relu(normal * weight[:, None] + bias[:, None]),
        "mean": mean,
        "rstd": rstd,
        "average_new": torch.lerp(average, mean, momentum),
        "spread_new": torch.lerp(spread, var * (count / (count - 1)), momentum),
    }
