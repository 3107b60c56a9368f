"""Oracle and PyTorch baseline of the swin_partition task."""

import torch
from torch.nn.functional import layer_norm


def inputs(config, generator):
    """Draw pixels with an offset and a scale each, weights near 1, and biases.

    One channel in fifty is ten times louder than the others.
    """
    images, channels, dtype = config["images"], config["channels"], config["dtype"]
    height, width = config["rows"] * config["size"], config["cols"] * config["size"]
    loud = 1.0 + 9.0 * (torch.rand(channels, generator=generator) < 0.02)
    size = loud * (0.2 + 2.0 * torch.rand(images, height, width, 1, generator=generator))
    offset = torch.randn(images, height, width, 1, generator=generator)
    x = offset + size * torch.randn(images, height, width, channels, generator=generator)
    weight = 1.0 + 0.2 * torch.randn(channels, generator=generator)
    bias = 0.2 * torch.randn(channels, generator=generator)
    return {"x": x.to(dtype), "weight": weight.to(dtype), "bias": bias.to(dtype)}


def reference(x, weight, bias, eps, rows, cols, size, shift, **_):
    """Return y [images, rows, cols, size, size, channels]."""
    centred = x - x.mean(dim=-1, keepdim=True)
    normal = centred / (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    down = (torch.arange(rows * size, device=x.device) + shift) % (rows * size)
    across = (torch.arange(cols * size, device=x.device) + shift) % (cols * size)
    moved = (normal * weight + bias)[:, down][:, :, across]
    windows = moved.unflatten(2, (cols, size)).unflatten(1, (rows, size))
    return {"y": windows.transpose(2, 3).contiguous()}


def baseline(x, weight, bias, eps, rows, cols, size, shift, **_):
    """PyTorch's normalisation, a roll if there is a shift, and a copy in another order."""
    normal = layer_norm(x, (x.shape[-1],), weight, bias, eps)
    if shift:
        normal = torch.roll(normal, (-shift, -shift), dims=(1, 2))
    windows = normal.view(x.shape[0], rows, size, cols, size, x.shape[-1])
    return {"y": windows.permute(0, 1, 3, 2, 4, 5).contiguous()}
