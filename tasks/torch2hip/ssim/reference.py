"""Oracle and PyTorch baseline of the ssim task."""

import torch
from torch.nn.functional import conv2d, pad

C1, C2 = 0.01**2, 0.03**2


def inputs(config, generator):
    """Draw images with edges and texture, their noisy counterparts, and a Gaussian window.

    The window's width differs by draw, and its sum is 1.
    """
    planes, height, width = config["planes"], config["height"], config["width"]
    level = torch.rand(planes, height, 1, generator=generator)
    upright = torch.rand(planes, 1, width, generator=generator)
    a = 0.35 * (level + upright) + 0.15 * torch.rand(planes, height, width, generator=generator)
    noise = 0.1 * torch.rand(planes, 1, 1, generator=generator)
    b = a + noise * torch.randn(planes, height, width, generator=generator)
    sigma = 1.2 + 0.8 * torch.rand(1, generator=generator)
    window = torch.exp(-((torch.arange(11) - 5.0) ** 2) / (2 * sigma**2))
    dtype = config["dtype"]
    return {"a": a.to(dtype), "b": b.clamp(0, 1).to(dtype), "window": window / window.sum()}


def similarity(a, b, mean):
    """The map of a and b, for a function that takes the weighted means of stacked maps.

    Two fractions: a product of their numerators would overflow float32 for a few large weights.
    """
    ma, mb, aa, bb, ab = mean(torch.stack((a, b, a * a, b * b, a * b))).unbind(0)
    va, vb, cov = aa - ma * ma, bb - mb * mb, ab - ma * mb
    brightness = (2 * ma * mb + C1) / (ma * ma + mb * mb + C1)
    return brightness * ((2 * cov + C2) / (va + vb + C2))


def reference(a, b, window, height, width, **_):
    """Return y: sums of shifted rows, then of shifted columns."""

    def mean(maps):
        wide = pad(maps, (5, 5, 5, 5))
        rows = sum(window[u] * wide[..., u : u + height, :] for u in range(11))
        return sum(window[v] * rows[..., v : v + width] for v in range(11))

    return {"y": similarity(a, b, mean)}


def baseline(a, b, window, height, width, **_):
    """Two of PyTorch's convolutions in float32, along columns and along rows."""

    def mean(maps):
        flat = maps.view(-1, 1, height, width)
        upright = conv2d(flat, window.view(1, 1, 11, 1), padding=(5, 0))
        return conv2d(upright, window.view(1, 1, 1, 11), padding=(0, 5)).view(maps.shape)

    return {"y": similarity(a.float(), b.float(), mean).to(a.dtype)}
