"""Oracle of the snake_conv1d task: PyTorch's dilated convolution."""

import torch
from torch.nn.functional import conv1d


def inputs(config, generator):
    """Draw features with a size a channel that change slowly, frequencies, weights and a residual.

    Frequencies are from a quarter to 8, as training leaves them.
    """
    batch, channels, filters = config["batch"], config["channels"], config["filters"]
    length, size, dtype = config["length"], config["size"], config["dtype"]
    wide = torch.randn(batch, channels, length + 1, generator=generator)
    large = 0.3 + 1.5 * torch.rand(channels, 1, generator=generator)
    x = large * (0.2 + wide[..., :-1] + 0.7 * wide[..., 1:])
    alpha = 0.25 * 32.0 ** torch.rand(channels, generator=generator)
    spread = (0.5 + torch.rand(filters, 1, 1, generator=generator)) / (channels * size) ** 0.5
    weight = spread * torch.randn(filters, channels, size, generator=generator)
    return {
        "x": x.to(dtype),
        "alpha": alpha,
        "weight": weight.to(dtype),
        "bias": (0.3 * torch.randn(filters, generator=generator)).to(dtype),
        "residual": torch.randn(batch, filters, length, generator=generator).to(dtype),
    }


def reference(x, alpha, weight, bias, residual, size, dilation, **_):
    """Return y [batch, filters, length]."""
    rate = alpha[:, None]
    a = x + torch.sin(rate * x).square() / (rate + 1e-9)
    padding = (size - 1) // 2 * dilation
    return {"y": residual + conv1d(a, weight, bias, padding=padding, dilation=dilation)}
