"""Oracle of the wkv task: logarithms of both sums, from running sums with exponents."""

import torch


def inputs(config, generator):
    """Draw keys with an offset a channel, values, and decays from 1/300 to 6 of a position.

    Some channels remember the last few positions and others the whole sequence.
    """
    batch, seq, channels = config["batch"], config["seq"], config["channels"]
    shape, dtype = (batch, seq, channels), config["dtype"]
    centre = 3.0 * torch.randn(channels, generator=generator)
    k = centre + 1.5 * torch.randn(shape, generator=generator)
    v = 0.5 + torch.randn(shape, generator=generator)
    rate = torch.rand(channels, generator=generator)
    return {
        "k": k.to(dtype),
        "v": v.to(dtype),
        "decay": torch.exp(-5.7 + 7.5 * rate),
        "bonus": 1.0 + torch.randn(channels, generator=generator),
    }


def reference(k, v, decay, bonus, seq, **_):
    """Return y [batch, seq, channels]."""
    peak = torch.full_like(k[:, 0], -1e38)
    above, below = torch.zeros_like(peak), torch.zeros_like(peak)
    ys = []
    for t in range(seq):
        own = bonus + k[:, t]
        high = torch.maximum(peak, own)
        past, now = torch.exp(peak - high), torch.exp(own - high)
        ys.append((past * above + now * v[:, t]) / (past * below + now))
        high = torch.maximum(peak - decay, k[:, t])
        past, now = torch.exp(peak - decay - high), torch.exp(k[:, t] - high)
        above, below, peak = past * above + now * v[:, t], past * below + now, high
    return {"y": torch.stack(ys, dim=1)}
