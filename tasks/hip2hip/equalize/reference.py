"""Oracle of the equalize task: counts, sums and tables of all values, in integers."""

import torch


def inputs(config, generator):
    """Draw planes that are dark, bright or flat, with noise; in a few, most pixels are white."""
    planes, pixels = config["planes"], config["pixels"]
    centre = 40 + 170 * torch.rand(planes, 1, generator=generator)
    width = 5 + 45 * torch.rand(planes, 1, generator=generator)
    x = centre + width * torch.randn(planes, pixels, generator=generator)
    burnt = torch.rand(planes, 1, generator=generator) < 1 / 4
    x = torch.where(burnt & (torch.rand(planes, pixels, generator=generator) < 0.7), 255.0, x)
    return {
        "x": x.round().clamp(0, 255).to(torch.uint8),
        "mean": 0.4 + 0.1 * torch.rand(planes, generator=generator),
        "factor": 4.2 + 0.4 * torch.rand(planes, generator=generator),
    }


def reference(x, mean, factor, pixels, **_):
    """Return y [planes, pixels]."""
    value = torch.arange(256, device=x.device)
    y = torch.empty(x.shape, dtype=mean.dtype, device=x.device)
    for plane, out, low, wide in zip(x, y, mean, factor, strict=True):
        count = torch.bincount(plane.long(), minlength=256)
        step = (pixels - int(count[count.nonzero().max()])) // 255
        spread = (count.cumsum(0) - count + step // 2) // max(step, 1)
        table = spread.clamp_max(255) if step else value
        out.copy_((table.to(mean.dtype)[plane.long()] / 255 - low) * wide)
    return {"y": y}
