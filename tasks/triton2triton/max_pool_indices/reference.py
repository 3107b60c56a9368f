"""Oracle of the max_pool_indices task: windows unfolded, and the first of the largest elements."""

import torch
from torch.nn.functional import pad as padded

PART = 1 << 24
"""Elements of windows that are in memory at once."""


def inputs(config, generator):
    """Draw maps after an activation: smooth, with steps of their own, and a third of them zeros.

    So many windows have several elements that are the largest.
    """
    planes, height, width = config["planes"], config["height"], config["width"]
    x = torch.randn(planes, height, width, generator=generator)
    x = x + 0.7 * x.roll(1, dims=1) + 0.7 * x.roll(1, dims=2)
    level = 2.0 * torch.randn(planes, 1, 1, generator=generator)
    coarse = torch.rand(planes, 1, 1, generator=generator) < 0.3
    x = torch.where(coarse, (2.0 * x).round() / 2.0, x).clamp_min(-0.3) + level
    return {"x": x.to(config["dtype"])}


def reference(x, planes, height, width, window, stride, pad, **_):
    """Return y and index [planes, rows, cols]."""
    rows = torch.arange(height, device=x.device)[:, None]
    place = padded(rows * width + torch.arange(width, device=x.device), (pad,) * 4, value=-1)
    place = place.unfold(0, window, stride).unfold(1, window, stride).flatten(2)
    values, indices = [], []
    for part in x.split(max(1, PART // (place.numel() + 1))):
        wide = padded(part, (pad,) * 4, value=-torch.inf)
        wide = wide.unfold(1, window, stride).unfold(2, window, stride).flatten(3)
        most = wide.amax(dim=-1)
        first = (wide == most[..., None]).to(torch.uint8).argmax(dim=-1)
        values.append(most)
        indices.append(place.expand(len(part), -1, -1, -1).gather(-1, first[..., None])[..., 0])
    return {"y": torch.cat(values), "index": torch.cat(indices).to(torch.int32)}
