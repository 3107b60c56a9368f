"""Oracle of the softmax_backward task: the product with the Jacobian of each row."""

import torch


def inputs(config, generator):
    """Draw y [rows, cols], softmax of scores that are flat in some rows and peaked in others.

    dy [rows, cols] is normal, with an offset a row that cancels exactly in the oracle.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    sharpness = 0.5 + 4.0 * torch.rand(rows, 1, generator=generator)
    scores = sharpness * torch.randn(rows, cols, generator=generator)
    offset = torch.randn(rows, 1, generator=generator)
    dy = 4.0 * (offset + torch.randn(rows, cols, generator=generator))
    return {"y": torch.softmax(scores, dim=-1).to(dtype), "dy": dy.to(dtype)}


def reference(y, dy, scale, **_):
    """Return dx [rows, cols]."""
    weighted = y * dy
    return {"dx": scale * (weighted - y * weighted.sum(dim=-1, keepdim=True))}
