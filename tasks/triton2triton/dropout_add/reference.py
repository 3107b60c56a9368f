"""Oracle of the dropout_add task: kept elements by PyTorch's generator, and their distribution."""

import torch


def inputs(config, generator):
    """Draw the output of a layer, a residual with an offset a column, and a seed."""
    shape, dtype = (config["rows"], config["cols"]), config["dtype"]
    offset = torch.randn(config["cols"], generator=generator)
    residual = offset + torch.randn(shape, generator=generator)
    x = torch.randn(shape, generator=generator)
    seed = torch.randint(2**62, (1,), generator=generator)
    return {"x": x.to(dtype), "residual": residual.to(dtype), "seed": seed}


def reference(x, residual, seed, p, **_):
    """Return y [rows, cols]."""
    generator = torch.Generator(x.device).manual_seed(int(seed))
    drawn = torch.rand(x.shape, generator=generator, dtype=torch.float64, device=x.device)
    return {"y": residual + torch.where(drawn >= p, x / (1.0 - p), 0.0)}


def cdf(outputs, x, residual, p, **_):
    """Return how probable it is that y is at most what it is: two values a place."""
    kept = residual + x / (1.0 - p)
    low, high = torch.minimum(kept, residual), torch.maximum(kept, residual)
    at_low = torch.where(kept < residual, 1.0 - p, p).to(low.dtype)
    y = outputs["y"]
    return {"y": torch.where(y < low, 0.0, torch.where(y < high, at_low, 1.0))}
