"""Oracle of the swiglu_quant task: groups of 128 products in 127ths of their largest."""

import torch

LEAST = 1e-20


def inputs(config, generator):
    """Draw x [rows, 2 * cols], normal, with values whose size differs by group of 128 columns."""
    rows, groups = config["rows"], config["groups"]
    gate = 2.0 * torch.randn(rows, groups, 128, generator=generator)
    size = 0.2 + 4.0 * torch.rand(rows, groups, 1, generator=generator)
    value = size * torch.randn(rows, groups, 128, generator=generator)
    return {"x": torch.cat((gate, value), dim=1).reshape(rows, -1).to(config["dtype"])}


def reference(x, groups, **_):
    """Return q [rows, 128 * groups], before it is rounded, and scale [rows, groups]."""
    gate, value = x.chunk(2, dim=-1)
    product = (gate * torch.sigmoid(gate) * value).unflatten(-1, (groups, 128))
    largest = product.abs().amax(dim=-1, keepdim=True)
    scale = torch.where(largest < LEAST, 0.0, largest / 127)
    steps = torch.where(scale > 0, product / scale, 0.0)
    return {"q": steps.flatten(1), "scale": scale[..., 0]}
