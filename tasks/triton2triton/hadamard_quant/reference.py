"""Oracle of the hadamard_quant task: seven rounds of sums and differences."""

import torch


def inputs(config, generator):
    """Draw activations with a scale a row, and a few columns that are far larger than the others.

    These are why rows are transformed: without it they would take all the steps.
    """
    rows, groups = config["rows"], config["groups"]
    scale = 0.05 + 2.0 * torch.rand(rows, 1, generator=generator)
    loud = 1.0 + 30.0 * (torch.rand(groups * 128, generator=generator) < 0.01)
    x = scale * loud * (0.2 + torch.randn(rows, groups * 128, generator=generator))
    return {"x": x.to(config["dtype"])}


def reference(x, groups, **_):
    """Return q [rows, 128 * groups], before it is rounded, and scale [rows]."""
    t = x.unflatten(1, (groups, *(2 for _ in range(7))))
    for axis in range(2, 9):
        first, second = t.unbind(axis)
        t = torch.stack((first + second, first - second), dim=axis)
    t = t.flatten(1) / 128**0.5
    scale = t.abs().amax(dim=-1) / 127
    steps = torch.where(scale[:, None] > 0, t / scale[:, None], 0.0)
    return {"q": steps, "scale": scale}
