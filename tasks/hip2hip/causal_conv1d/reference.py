"""Oracle of the causal_conv1d task: PyTorch's grouped convolution of padded sequences."""

import torch


def inputs(config, generator):
    """Draw x [batch, channels, seq], correlated in time as features of a text are, and taps.

    Taps and biases are those of a uniform initialisation, about as large as trained ones.
    """
    batch, channels, seq = config["batch"], config["channels"], config["seq"]
    width, dtype = config["width"], config["dtype"]
    scale = 0.3 + 2.0 * torch.rand(channels, 1, generator=generator)
    noise = torch.randn(batch, channels, seq + 1, generator=generator)
    x = scale * (noise[..., 1:] + 0.5 * noise[..., :-1])
    weight = 2.0 * torch.rand(channels, width, generator=generator) - 1.0
    bias = torch.rand(channels, generator=generator) - 0.5
    return {"x": x.to(dtype), "weight": weight.to(dtype), "bias": bias.to(dtype)}


def reference(x, weight, bias, width, **_):
    """Return y [batch, channels, seq]."""
    padded = torch.nn.functional.pad(x, (width - 1, 0))
    z = torch.nn.functional.conv1d(padded, weight[:, None, :], bias, groups=x.shape[1])
    return {"y": z * torch.sigmoid(z)}
