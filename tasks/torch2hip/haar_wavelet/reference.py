"""Oracle and PyTorch baseline of the haar_wavelet task."""

import torch

SIGNS = ((1, 1, 1, 1), (1, -1, 1, -1), (1, 1, -1, -1), (1, -1, -1, 1))


def inputs(config, generator):
    """Draw images with a level each, smooth along rows and along columns, and with noise."""
    images, channels = config["images"], config["channels"]
    height, width = 4 * config["rows"], 4 * config["cols"]
    level = torch.randn(images, channels, 1, 1, generator=generator)
    upright = torch.randn(images, channels, 1, width, generator=generator)
    across = torch.randn(images, channels, height, 1, generator=generator)
    noise = torch.randn(images, channels, height, width, generator=generator)
    return {"x": (level + 0.5 * upright + 0.7 * across + 0.3 * noise).to(config["dtype"])}


def transformed(x):
    """The four maps of one level, along the third axis: a product of each square with signs."""
    squares = torch.stack([x[..., row::2, col::2] for row in (0, 1) for col in (0, 1)])
    signs = torch.tensor(SIGNS, dtype=x.dtype, device=x.device)
    return torch.einsum("ms,sicrk->icmrk", signs / 2, squares)


def reference(x, **_):
    """Return fine and coarse."""
    first = transformed(x)
    return {"fine": first[:, :, 1:].contiguous(), "coarse": transformed(first[:, :, 0])}


def level(x):
    """The four maps of one level, with sums and differences that are used twice."""
    a, b = x[..., ::2, ::2], x[..., ::2, 1::2]
    c, d = x[..., 1::2, ::2], x[..., 1::2, 1::2]
    above, below, left, right = a + b, c + d, a - b, c - d
    return (above + below) / 2, (left + right) / 2, (above - below) / 2, (left - right) / 2


def baseline(x, **_):
    """Elementwise kernels in float32."""
    low, *details = level(x.float())
    fine = torch.stack(details, dim=2).to(x.dtype)
    return {"fine": fine, "coarse": torch.stack(level(low), dim=2).to(x.dtype)}
