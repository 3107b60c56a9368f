"""Oracle of the ssd_chunk_state task: sums from the end of each chunk, and one product."""

import torch


def inputs(config, generator):
    """Draw projections of spread 1 with a size a head, rates of 1 to 16, and biases of small steps.

    Some heads keep what the whole chunk had, and others only its end.
    """
    batch, heads, dim = config["batch"], config["heads"], config["dim"]
    seq, dtype = config["chunks"] * config["size"], config["dtype"]
    size = 0.3 + torch.rand(heads, 1, generator=generator)
    x = size * (0.3 + torch.randn(batch, seq, heads, dim, generator=generator))
    b = torch.randn(batch, seq, config["states"], generator=generator)
    dt = torch.randn(heads, generator=generator) + torch.randn(
        batch, seq, heads, generator=generator
    )
    step = 10.0 ** (2.0 * torch.rand(heads, generator=generator) - 3.0)
    return {
        "x": x.to(dtype),
        "b": b.to(dtype),
        "dt": dt.to(dtype),
        "rate": 1.0 + 15.0 * torch.rand(heads, generator=generator),
        "bias": step + torch.log(-torch.expm1(-step)),
    }


def reference(x, b, dt, rate, bias, chunks, **_):
    """Return state [batch, chunks, heads, dim, states]."""
    u = dt + bias
    step = torch.logaddexp(u, torch.zeros_like(u)).unflatten(1, (chunks, -1))
    after = step.flip(2).cumsum(2).flip(2) - step
    weight = torch.exp(-rate.abs() * after) * step
    x, b = x.unflatten(1, (chunks, -1)), b.unflatten(1, (chunks, -1))
    weighted = weight[..., None] * x
    return {"state": torch.einsum("ncthd,ncts->nchds", weighted, b)}
