"""Oracle of the stft_magnitude task: PyTorch's transform of frames."""

import torch


def inputs(config, generator):
    """Draw a voice: a pitch with overtones that fall off, noise, and loudness that changes.

    The window is Hann's, a little wider or narrower.
    """
    batch, frames = config["batch"], config["frames"]
    time = torch.arange((frames + 3) * 256, dtype=torch.float64)
    pitch = 0.005 + 0.02 * torch.rand(batch, 1, generator=generator).double()
    phase = 6.28 * torch.rand(batch, 8, generator=generator).double()
    overtones = 2.0 * torch.arange(1, 9, dtype=torch.float64) * torch.pi
    voice = torch.zeros(batch, len(time), dtype=torch.float64)
    for number in range(8):
        wave = torch.sin(overtones[number] * pitch * time + phase[:, number : number + 1])
        voice += wave / (number + 1)
    loud = 0.3 + torch.sin(time / 3000.0 + phase[:, :1]).square()
    noise = 0.05 * torch.randn(batch, len(time), generator=generator)
    power = 0.9 + 0.2 * torch.rand(1, generator=generator)
    window = torch.hann_window(1024).clamp_min(1e-6) ** power
    return {"x": (0.3 * loud * voice + noise).to(config["dtype"]), "window": window}


def reference(x, window, **_):
    """Return y [batch, frames, 513]."""
    found = torch.fft.rfft(x.unfold(-1, 1024, 256) * window)
    return {"y": (found.real.square() + found.imag.square() + 1e-9).sqrt()}
