"""Oracle of the reduce_middle task: products with ones, and of x with itself."""

import torch


def inputs(config, generator):
    """Draw features with a mean and a scale a column, and a few columns that are far larger."""
    outer, size, inner = config["outer"], config["size"], config["inner"]
    scale = 0.2 + torch.rand(inner, generator=generator)
    scale = torch.where(torch.rand(inner, generator=generator) < 0.05, 20.0 * scale, scale)
    mean = torch.randn(outer, 1, inner, generator=generator)
    noise = torch.randn(outer, size, inner, generator=generator)
    return {"x": (scale * (mean + noise)).to(config["dtype"])}


def reference(x, **_):
    """Return total and squares [outer, inner]."""
    ones = x.new_ones(x.shape[1])
    return {"total": torch.einsum("osi,s->oi", x, ones), "squares": (x * x).sum(dim=1)}
