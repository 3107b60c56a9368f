"""Oracle of the swiglu task: the gate through SiLU, times the value."""

import torch


def inputs(config, generator):
    """Draw x [rows, 2 * cols], wide enough to reach both tails of the gate."""
    rows, cols = config["rows"], config["cols"]
    x = 3.0 * torch.randn(rows, 2 * cols, generator=generator)
    return {"x": x.to(config["dtype"])}


def reference(x, **_):
    """Return y [rows, cols]."""
    gate, value = x.chunk(2, dim=-1)
    return {"y": gate * torch.sigmoid(gate) * value}
