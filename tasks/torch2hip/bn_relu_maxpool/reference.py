"""Oracle and PyTorch baseline of the bn_relu_maxpool task."""

import torch
from torch.nn.functional import max_pool2d, pad


def inputs(config, generator):
    """Draw responses of filters with a mean and a size a channel, and a normalisation that fits.

    Shifts are such that about a third of the windows have nothing above zero. One scale in eight
    is negative, so that a channel's smallest element counts.
    """
    images, channels = config["images"], config["channels"]
    shape = (images, channels, config["height"], config["width"])
    mean = torch.randn(channels, generator=generator)
    size = 0.5 + 2.0 * torch.rand(channels, generator=generator)
    x = mean[:, None, None] + size[:, None, None] * torch.randn(shape, generator=generator)
    gamma = 0.5 + torch.rand(channels, generator=generator)
    gamma = torch.where(torch.rand(channels, generator=generator) < 1 / 8, -gamma, gamma)
    beta = -1.2 + 0.5 * torch.randn(channels, generator=generator)
    scale = gamma / size
    return {"x": x.to(config["dtype"]), "scale": scale, "shift": beta - mean * scale}


def reference(x, scale, shift, height, width, **_):
    """Return y: the largest of nine shifted images, of which every other row and column counts."""
    a = pad(torch.relu(x * scale[:, None, None] + shift[:, None, None]), (1, 1, 1, 1))
    y = torch.zeros_like(a[:, :, :height:2, :width:2])
    for row in range(3):
        for col in range(3):
            torch.maximum(y, a[:, :, row : row + height : 2, col : col + width : 2], out=y)
    return {"y": y}


def baseline(x, scale, shift, **_):
    """The normalisation in float32, rounded; ReLU in place; and PyTorch's pooling."""
    normal = torch.addcmul(shift[:, None, None], x, scale[:, None, None]).to(x.dtype)
    return {"y": max_pool2d(torch.relu_(normal), 3, 2, 1)}
