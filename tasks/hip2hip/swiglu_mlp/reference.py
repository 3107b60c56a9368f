"""Oracle of the swiglu_mlp task: three products and an activation."""

import torch
from torch.nn.functional import silu


def inputs(config, generator):
    """Draw normalised rows with a few large columns, and weights that keep the size of values."""
    rows, cols, hidden = config["rows"], config["cols"], config["hidden"]
    size = torch.where(torch.rand(cols, generator=generator) < 0.02, 4.0, 1.0)

    def weight(outs, ins):
        return torch.randn(outs, ins, generator=generator) * ins**-0.5

    tensors = {
        "x": size * torch.randn(rows, cols, generator=generator),
        "gate": 1.5 * weight(hidden, cols),
        "up": weight(hidden, cols),
        "down": 1.5 * weight(cols, hidden),
    }
    return {name: tensor.to(config["dtype"]) for name, tensor in tensors.items()}


def reference(x, gate, up, down, **_):
    """Return y [rows, cols]."""
    return {"y": (silu(x @ gate.T) * (x @ up.T)) @ down.T}
