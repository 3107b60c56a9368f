"""Oracle of the add_layernorm task: the sum, and the centred sum over its spread."""

import torch


def inputs(config, generator):
    """Draw a residual stream with a scale and an offset a row, and a block's smaller output.

    Neighbours lie on two sides of their row's offset, so that no row is nearly constant.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    scale = 0.2 + 2.0 * torch.rand(rows, 1, generator=generator)
    offset = 8.0 * scale * (2.0 * torch.rand(rows, 1, generator=generator) - 1.0)
    side = 1.0 - 2.0 * (torch.arange(cols) % 2)
    residual = (side + torch.randn(rows, cols, generator=generator)) * scale + offset
    x = 0.5 * scale * torch.randn(rows, cols, generator=generator)
    return {
        "x": x.to(dtype),
        "residual": residual.to(dtype),
        "weight": (1.0 + 0.2 * torch.randn(cols, generator=generator)).to(dtype),
        "bias": (0.2 * torch.randn(cols, generator=generator)).to(dtype),
    }


def reference(x, residual, weight, bias, eps, **_):
    """Return total [rows, cols] and y [rows, cols]."""
    total = x + residual
    variance, mean = torch.var_mean(total, dim=-1, correction=0, keepdim=True)
    return {"total": total, "y": (total - mean) * torch.rsqrt(variance + eps) * weight + bias}
