"""Oracle and PyTorch baseline of the log_mel task."""

import torch


def inputs(config, generator):
    """Draw spectra that fall off with pitch, with pauses, and triangular bands as of the mel scale.

    In pauses energies are small enough that they are cut off; clips are loud or soft.
    """
    batch, bins, frames, mels = (config[name] for name in ("batch", "bins", "frames", "mels"))
    pitch = torch.arange(bins, dtype=torch.float32)
    slope = 10.0 ** (-2.0 * pitch / bins)
    loud = 10.0 ** (1.5 * torch.rand(batch, 1, 1, 1, generator=generator) - 1.0)
    pause = torch.rand(batch, 1, frames, 1, generator=generator) < 0.2
    size = loud * torch.where(pause, 1e-5, 1.0) * slope[:, None, None]
    spectrum = size * torch.randn(batch, bins, frames, 2, generator=generator)
    edges = (torch.linspace(0.0, 1.0, mels + 2).exp2() - 1.0) * (bins - 1)
    edges = edges * (1.0 + 0.02 * torch.rand(1, generator=generator))
    below, centre, above = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    width = (above - below).clamp_min(1e-3) / 2.0
    band = torch.minimum((pitch - below) / width, (above - pitch) / width).clamp_min(0.0)
    nearest = (pitch - centre).abs() <= 0.5
    return {"spectrum": spectrum, "bank": torch.where(nearest, band.clamp_min(0.1), band)}


def reference(spectrum, bank, **_):
    """Return y [batch, mels, frames]."""
    power = spectrum.square().sum(dim=-1)
    level = torch.log10(torch.einsum("mk,bkt->bmt", bank, power).clamp_min(1e-10))
    peak = level.amax(dim=(1, 2), keepdim=True)
    return {"y": (torch.maximum(level, peak - 8.0) + 4.0) / 4.0}


def baseline(spectrum, bank, **_):
    """Whisper's own code: a power, one matrix product, and elementwise kernels."""
    power = torch.view_as_complex(spectrum).abs() ** 2
    level = (bank @ power).clamp(min=1e-10).log10()
    level = torch.maximum(level, level.amax(dim=(1, 2), keepdim=True) - 8.0)
    return {"y": (level + 4.0) / 4.0}
