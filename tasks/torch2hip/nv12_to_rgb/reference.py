"""Oracle and PyTorch baseline of the nv12_to_rgb task."""

import torch

OF_LUMA, RED_V, GREEN_U, GREEN_V, BLUE_U = 1.1644, 1.7927, -0.2132, -0.5329, 2.1124


def inputs(config, generator):
    """Draw frames with smooth light and colours, some to be cut off, and statistics."""
    frames, rows, cols = config["frames"], config["rows"], config["cols"]
    light = 60 + 150 * torch.rand(frames, 2 * rows, 1, generator=generator)
    luma = light + 40 * torch.randn(frames, 2 * rows, 2 * cols, generator=generator)
    tint = 128 + 35 * torch.randn(frames, 1, 2 * cols, generator=generator)
    chroma = tint + 15 * torch.randn(frames, rows, 2 * cols, generator=generator)
    return {
        "luma": luma.round().clamp(0, 255).to(torch.uint8),
        "chroma": chroma.round().clamp(0, 255).to(torch.uint8),
        "mean": (115 + 10 * torch.randn(3, generator=generator)).to(config["dtype"]),
        "factor": ((1 + 0.1 * torch.randn(3, generator=generator)) / 58).to(config["dtype"]),
    }


def reference(luma, chroma, mean, factor, **_):
    """Return y: a product with a matrix of 3 x 3."""
    u, v = (chroma[:, :, i::2].to(mean.dtype) - 128 for i in (0, 1))
    wide = [x.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2) for x in (u, v)]
    parts = torch.stack((luma.to(mean.dtype) - 16, *wide), dim=-1)
    rows = ((OF_LUMA, 0, RED_V), (OF_LUMA, GREEN_U, GREEN_V), (OF_LUMA, BLUE_U, 0))
    matrix = torch.tensor(rows, dtype=mean.dtype, device=mean.device)
    colours = (parts @ matrix.T).clamp(0, 255)
    return {"y": ((colours - mean) * factor).permute(0, 3, 1, 2).contiguous()}


def baseline(luma, chroma, mean, factor, frames, rows, cols, **_):
    """Elementwise kernels in float32; a colour's part of each square is broadcast over it."""
    y = (luma.float().sub_(16).mul_(OF_LUMA)).view(frames, rows, 2, cols, 2)
    u, v = (chroma[:, :, i::2].float().sub_(128)[:, :, None, :, None] for i in (0, 1))
    colours = (y + RED_V * v, y + (GREEN_U * u + GREEN_V * v), y + BLUE_U * u)
    rgb = torch.stack(colours, dim=1).view(frames, 3, 2 * rows, 2 * cols).clamp_(0, 255)
    out = rgb.sub_(mean.float()[:, None, None]).mul_(factor.float()[:, None, None])
    return {"y": out.to(mean.dtype)}
