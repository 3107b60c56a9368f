"""Oracle of the conv2d_relu task: PyTorch's convolution, with channels moved to the front."""

import torch
from torch.nn.functional import conv2d


def inputs(config, generator):
    """Draw what a ReLU left of normal images, weights of spread 1 / sqrt(fan in), and biases.

    About half of x is zero, and of y as well.
    """
    images, height, width = config["images"], config["height"], config["width"]
    channels, filters, dtype = config["channels"], config["filters"], config["dtype"]
    x = torch.randn(images, height, width, channels, generator=generator)
    size = (0.5 + torch.rand(filters, 1, 1, 1, generator=generator)) * (2 / (9 * channels)) ** 0.5
    weight = size * torch.randn(filters, 3, 3, channels, generator=generator)
    bias = 0.3 * torch.randn(filters, generator=generator)
    return {
        "x": torch.relu(x + 0.2).to(dtype),
        "weight": weight.to(dtype),
        "bias": bias.to(dtype),
    }


def reference(x, weight, bias, **_):
    """Return y [images, height, width, filters]."""
    moved = x.permute(0, 3, 1, 2), weight.permute(0, 3, 1, 2)
    y = torch.relu(conv2d(*moved, bias, padding=1))
    return {"y": y.permute(0, 2, 3, 1).contiguous()}
