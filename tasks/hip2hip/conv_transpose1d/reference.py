"""Oracle of the conv_transpose1d task: PyTorch's transposed convolution, cut to its place."""

import torch
from torch.nn.functional import conv_transpose1d, leaky_relu


def inputs(config, generator):
    """Draw features with a size a channel, weights of spread 1 / sqrt(2 channels), and biases."""
    batch, channels, filters = config["batch"], config["channels"], config["filters"]
    stride, dtype = config["stride"], config["dtype"]
    size = 0.3 + 2.0 * torch.rand(channels, 1, generator=generator)
    x = size * torch.randn(batch, channels, config["length"], generator=generator)
    weight = torch.randn(channels, filters, 2 * stride, generator=generator)
    bias = 0.3 * torch.randn(filters, generator=generator)
    return {
        "x": x.to(dtype),
        "weight": (weight / (2.0 * channels) ** 0.5).to(dtype),
        "bias": bias.to(dtype),
    }


def reference(x, weight, bias, length, stride, **_):
    """Return y [batch, filters, length * stride]."""
    whole = conv_transpose1d(leaky_relu(x, 0.1), weight, bias, stride=stride)
    return {"y": whole.narrow(-1, stride // 2, length * stride).contiguous()}
