"""Oracle of the depthwise_conv2d task: PyTorch's convolution with as many groups as channels."""

import torch
from torch.nn.functional import conv2d


def inputs(config, generator):
    """Draw images with a mean a channel, filters whose middle weighs most, and biases."""
    images, height, width = config["images"], config["height"], config["width"]
    channels, size, dtype = config["channels"], config["size"], config["dtype"]
    centre = torch.randn(channels, generator=generator)
    x = centre + torch.randn(images, height, width, channels, generator=generator)
    weight = torch.randn(size, size, channels, generator=generator) / size
    weight[size // 2, size // 2] += 1.0
    bias = 0.5 * torch.randn(channels, generator=generator)
    return {"x": x.to(dtype), "weight": weight.to(dtype), "bias": bias.to(dtype)}


def reference(x, weight, bias, channels, size, **_):
    """Return y [images, height, width, channels]."""
    filters = weight.permute(2, 0, 1)[:, None]
    y = conv2d(x.permute(0, 3, 1, 2), filters, bias, padding=size // 2, groups=channels)
    return {"y": y.permute(0, 2, 3, 1).contiguous()}
