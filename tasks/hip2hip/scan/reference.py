"""Oracle of the scan task: the running sum."""

import torch


def inputs(config, generator):
    """Draw x [n], normal and of mean zero, scaled so that float16 holds all sums.

    Sums of numbers of one sign are nearly a straight line, whatever the numbers: a kernel that
    reads a part of them and guesses the rest would be right.
    """
    n = config["n"]
    x = min(1.0, 8192.0 / n**0.5) * torch.randn(n, generator=generator)
    return {"x": x.to(config["dtype"])}


def reference(x, **_):
    """Return y [n]: the sum of everything up to and including each element."""
    return {"y": torch.cumsum(x, dim=0)}
