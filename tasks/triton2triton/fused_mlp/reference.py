"""Oracle of the fused_mlp task: three products and SiLU."""

import torch


def inputs(config, generator):
    """Draw normalised activations with a few large columns, and weights of trained sizes."""
    tokens, width, hidden = config["tokens"], config["width"], config["hidden"]
    dtype = config["dtype"]
    loud = 1.0 + 4.0 * (torch.rand(width, generator=generator) < 0.02)
    x = loud * torch.randn(tokens, width, generator=generator)
    size = (0.4 + torch.rand(hidden, 1, generator=generator)) / width**0.5
    gate = size * (0.1 + torch.randn(hidden, width, generator=generator))
    up = size * torch.randn(hidden, width, generator=generator)
    down = torch.randn(width, hidden, generator=generator) / hidden**0.5
    return {"x": x.to(dtype), "gate": gate.to(dtype), "up": up.to(dtype), "down": down.to(dtype)}


def reference(x, gate, up, down, **_):
    """Return y [tokens, width]."""
    return {"y": (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T}
