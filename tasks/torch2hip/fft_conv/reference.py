"""Oracle and PyTorch baseline of the fft_conv task."""

import torch


def inputs(config, generator):
    """Draw inputs with a trend, gates around one, and filters that fade at different rates.

    As in Hyena, a filter is noise times an exponential decay, and sums are of the order of one.
    """
    batch, channels, seq = config["batch"], config["channels"], config["seq"]
    trend = 0.5 * torch.randn(batch, channels, 1, generator=generator)
    u = trend + torch.randn(batch, channels, seq, generator=generator)
    gate = 0.5 + torch.randn(batch, channels, seq, generator=generator)
    rate = 10.0 ** (1.5 * torch.rand(channels, 1, generator=generator))
    fading = torch.exp(-rate * torch.arange(seq) / seq)
    noise = torch.randn(channels, seq, generator=generator)
    kernel = noise * fading * (rate / seq).sqrt()
    return {
        "u": u.to(config["dtype"]),
        "gate": gate.to(config["dtype"]),
        "filter": kernel,
        "skip": 0.5 * torch.randn(channels, generator=generator),
    }


def convolved(u, kernel, seq):
    """Causal sums of u [batch, channels, seq] with kernel [channels, seq]."""
    spectrum = torch.fft.rfft(u, n=2 * seq) * torch.fft.rfft(kernel, n=2 * seq)
    return torch.fft.irfft(spectrum, n=2 * seq)[..., :seq]


def reference(u, gate, skip, seq, **tensors):
    """Return y [batch, channels, seq]."""
    sums = convolved(u, tensors["filter"], seq)
    return {"y": gate * (skip[:, None] * u + sums)}


def baseline(u, gate, skip, seq, **tensors):
    """PyTorch's transforms in float32, of a length that is a power of two."""
    wide = u.float()
    length = 1 << (2 * seq - 1).bit_length()
    spectrum = torch.fft.rfft(wide, n=length).mul_(torch.fft.rfft(tensors["filter"], n=length))
    sums = torch.fft.irfft(spectrum, n=length)[..., :seq]
    return {"y": torch.addcmul(sums, skip[:, None], wide).mul_(gate).to(u.dtype)}
