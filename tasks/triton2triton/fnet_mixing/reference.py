"""Oracle of the fnet_mixing task: PyTorch's transform of two axes."""

import torch


def inputs(config, generator):
    """Draw hidden states after a normalisation: some columns are far from zero or large.

    Neighbouring tokens resemble each other a little.
    """
    batch, seq, hidden = config["batch"], config["seq"], config["hidden"]
    mean = 0.3 * torch.randn(hidden, generator=generator)
    scale = 0.5 + torch.rand(hidden, generator=generator)
    scale = torch.where(torch.rand(hidden, generator=generator) < 0.02, 8.0 * scale, scale)
    noise = torch.randn(batch, seq, hidden, generator=generator)
    noise = noise + 0.3 * noise.roll(1, dims=1)
    return {"x": (mean + scale * noise).to(config["dtype"])}


def reference(x, **_):
    """Return y [batch, seq, hidden]."""
    return {"y": torch.fft.fft2(x, norm="ortho").real}
