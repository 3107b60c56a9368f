"""Oracle of the layernorm task: centred rows over their root mean square."""

import torch


def inputs(config, generator):
    """Draw x [rows, cols] with a scale and an offset per row; weight near 1, bias near 0.

    The offsets, up to ten times a row's spread, cost digits in a kernel that takes
    the variance as a difference of large numbers. Neighbours lie on two sides of their
    row's offset, so that no row is nearly constant: two or three equal values leave
    nothing but the rounding of their mean, in which honest kernels differ.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    scale = 0.1 + 2.0 * torch.rand(rows, 1, generator=generator)
    offset = 10.0 * scale * (2.0 * torch.rand(rows, 1, generator=generator) - 1.0)
    side = 1.0 - 2.0 * (torch.arange(cols) % 2)
    x = (side + 0.3 * torch.randn(rows, cols, generator=generator)) * scale + offset
    return {
        "x": x.to(dtype),
        "weight": (1.0 + 0.2 * torch.randn(cols, generator=generator)).to(dtype),
        "bias": (0.2 * torch.randn(cols, generator=generator)).to(dtype),
    }


def reference(x, weight, bias, eps, **_):
    """Return y [rows, cols]."""
    centred = x - x.mean(dim=-1, keepdim=True)
    spread = torch.sqrt(centred.square().mean(dim=-1, keepdim=True) + eps)
    return {"y": centred / spread * weight + bias}
