"""Oracle of the ssd_chunk_cumsum task: softplus as a logarithm of a sum, and a prefix sum."""

import torch


def inputs(config, generator):
    """Draw projections dt that differ by head, decays a of -1 to -16, and biases of small steps.

    Biases are the inverse softplus of steps between 0.001 and 0.1, as a layer is initialised.
    """
    batch, heads = config["batch"], config["heads"]
    seq = config["chunks"] * config["size"]
    centre = torch.randn(heads, generator=generator)
    dt = centre + 1.5 * torch.randn(batch, seq, heads, generator=generator)
    step = 10.0 ** (2.0 * torch.rand(heads, generator=generator) - 3.0)
    return {
        "dt": dt.to(config["dtype"]),
        "a": -(1.0 + 15.0 * torch.rand(heads, generator=generator)),
        "bias": step + torch.log(-torch.expm1(-step)),
    }


def reference(dt, a, bias, low, high, chunks, **_):
    """Return delta and total [batch, heads, chunks, size]."""
    u = dt + bias
    step = torch.logaddexp(u, torch.zeros_like(u)).clamp(low, high)
    delta = step.transpose(1, 2).unflatten(-1, (chunks, -1)).contiguous()
    return {"delta": delta, "total": (delta * a[:, None, None]).cumsum(-1)}
