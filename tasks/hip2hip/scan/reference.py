"""Oracle of the scan task: the running sum."""

import torch


def inputs(config, generator):
    """Draw x [n], uniform and mostly positive, scaled so that float16 holds the total.

    The drift keeps the sums away from zero, where a relative error says nothing.
    """
    n = config["n"]
    scale = min(1.0, 32768.0 / n)
    x = scale * (1.25 * torch.rand(n, generator=generator) - 0.25)
    return {"x": x.to(config["dtype"])}


def reference(x, **_):
    """Return y [n]: the sum of everything up to and including each element."""
    return {"y": torch.cumsum(x, dim=0)}
