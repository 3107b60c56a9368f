"""Oracle of the swiglu_backward task: the derivative of SiLU from sigmoid's."""

import torch


def inputs(config, generator):
    """Draw x [rows, 2 * cols], wide enough to reach both tails of the gate, and dy [rows, cols].

    Gradients have a scale of their own in each row, as tokens have.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    x = 3.0 * torch.randn(rows, 2 * cols, generator=generator)
    size = 0.1 + torch.rand(rows, 1, generator=generator)
    dy = size * torch.randn(rows, cols, generator=generator)
    return {"x": x.to(dtype), "dy": dy.to(dtype)}


def reference(x, dy, **_):
    """Return dx [rows, 2 * cols]."""
    gate, value = x.chunk(2, dim=-1)
    share = torch.sigmoid(gate)
    slope = share + gate * share * torch.sigmoid(-gate)
    return {"dx": torch.cat((dy * value * slope, dy * gate * share), dim=-1)}
