"""Oracle of the weight_norm_backward task: directions of rows, and what is across them."""

import torch


def inputs(config, generator):
    """Draw rows of different lengths, gains that have moved away from them, and gradients.

    Gradients have a part along the row, as those of a layer whose size is still changing.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    size = (0.3 + 2.0 * torch.rand(rows, 1, generator=generator)) / cols**0.5
    v = (size * torch.randn(rows, cols, generator=generator)).to(dtype)
    length = v.double().norm(dim=1).float()
    part = torch.randn(rows, 1, generator=generator)
    dw = torch.randn(rows, cols, generator=generator) + part * v.float() / size
    return {
        "v": v,
        "g": length * (0.6 + torch.rand(rows, generator=generator)),
        "dw": (0.5 * dw).to(dtype),
    }


def reference(v, g, dw, **_):
    """Return w and dv [rows, cols] and dg [rows]."""
    norm = (v.square().sum(dim=1, keepdim=True) + 1e-12).sqrt()
    direction = v / norm
    along = (dw * direction).sum(dim=1, keepdim=True)
    gain = g[:, None]
    return {
        "w": gain * direction,
        "dv": gain / norm * (dw - along * direction),
        "dg": along[:, 0],
    }
