"""Oracle of the integral_image task: two cumulative sums, in 64 bits."""

import torch
from torch.nn.functional import pad


def inputs(config, generator):
    """Draw photographs: brightness with a slope and edges, noise, and some saturated places."""
    images, height, width = config["images"], config["height"], config["width"]
    slope = 60.0 * torch.randn(2, images, 1, 1, generator=generator)
    down = torch.linspace(-1, 1, height)[:, None]
    across = torch.linspace(-1, 1, width)
    edge = 2.0 * torch.rand(images, 1, 1, generator=generator) - 1.0
    bright = 110.0 + slope[0] * down + slope[1] * across + 50.0 * (across - down > edge)
    noise = 20.0 * torch.randn(images, height, width, generator=generator)
    return {"image": (bright + noise).clamp(0, 255).to(torch.uint8)}


def reference(image, **_):
    """Return table [images, height + 1, width + 1]."""
    table = image.to(torch.int64).cumsum(dim=1).cumsum(dim=2)
    return {"table": pad(table, (1, 0, 1, 0)).to(torch.int32)}
