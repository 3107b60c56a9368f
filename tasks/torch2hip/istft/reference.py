"""Oracle and PyTorch baseline of the istft task."""

import torch
from torch.nn.functional import fold

LENGTH, HOP = 1024, 256


def inputs(config, generator):
    """Draw spectra that fall with the frequency, with a few strong tones, louder at times."""
    batch, frames = config["batch"], config["frames"]
    falling = 40.0 / (1.0 + 0.05 * torch.arange(513))[:, None]
    tone = torch.rand(batch, 513, 1, generator=generator) < 0.03
    loud = 0.2 + torch.rand(batch, 1, frames, generator=generator)
    size = torch.where(tone, 4.0 * falling, falling) * loud
    real, imag = torch.randn(2, batch, 513, frames, generator=generator)
    return {"real": size * real, "imag": size * imag}


def reference(real, imag, batch, frames, **_):
    """Return y: products with cosines and sines, added by folding."""
    n = torch.arange(LENGTH, device=real.device)
    angle = (n[:, None] * torch.arange(513, device=real.device) % LENGTH).to(real)
    angle = angle * (2 * torch.pi / LENGTH)
    weight = torch.full((513,), 2.0 / LENGTH, dtype=real.dtype, device=real.device)
    weight[[0, 512]] = 1.0 / LENGTH
    sound = (angle.cos() * weight) @ real - (angle.sin() * weight) @ imag
    window = 0.5 - 0.5 * torch.cos(n.to(real) * (2 * torch.pi / LENGTH))
    total = LENGTH + HOP * (frames - 1)

    def added(parts):
        return fold(parts, (1, total), (1, LENGTH), stride=(1, HOP))[:, 0, 0]

    squares = window.square()[None, :, None].expand(1, LENGTH, frames)
    y = added(window[:, None] * sound)[:, LENGTH // 2 : total - LENGTH // 2]
    return {"y": y / added(squares)[:, LENGTH // 2 : total - LENGTH // 2]}


def baseline(real, imag, **_):
    """PyTorch's own inverse transform."""
    window = torch.hann_window(LENGTH, device=real.device)
    return {"y": torch.istft(torch.complex(real, imag), LENGTH, HOP, window=window)}
