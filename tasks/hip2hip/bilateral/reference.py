"""Oracle of the bilateral task: sums over shifted images, one shift a time."""

import torch


def inputs(config, generator):
    """Draw depths and colours of a scene with upright and level edges, and noise on both.

    Colours differ by about a half across edges and by a tenth within them.
    """
    images, height, width = config["images"], config["height"], config["width"]
    level = (torch.rand(images, 1, height, 1, generator=generator) < 0.1).float().cumsum(2) % 2
    upright = (torch.rand(images, 1, 1, width, generator=generator) < 0.1).float().cumsum(3) % 2
    scene = level + upright
    tint = 0.3 + 0.4 * torch.rand(images, 3, 1, 1, generator=generator)
    guide = tint * scene + 0.1 * torch.randn(images, 3, height, width, generator=generator)
    depth = 1.0 + 2.0 * torch.rand(images, 1, 1, generator=generator)
    noise = 0.3 * torch.randn(images, height, width, generator=generator)
    value = depth * scene[:, 0] + noise
    return {"value": value.to(config["dtype"]), "guide": guide.to(config["dtype"])}


def reference(value, guide, alike, height, width, reach, **_):
    """Return y [images, height, width]."""
    total, weights = torch.zeros_like(value), torch.zeros_like(value)
    for down in range(-min(reach, height - 1), min(reach, height - 1) + 1):
        for right in range(-min(reach, width - 1), min(reach, width - 1) + 1):
            rows = slice(max(0, -down), height - max(0, down))
            cols = slice(max(0, -right), width - max(0, right))
            from_rows = slice(rows.start + down, rows.stop + down)
            from_cols = slice(cols.start + right, cols.stop + right)
            apart = guide[:, :, from_rows, from_cols] - guide[:, :, rows, cols]
            away = (down**2 + right**2) * 4.5 / reach**2
            weight = torch.exp(-away - alike * apart.square().sum(dim=1))
            total[:, rows, cols] += weight * value[:, from_rows, from_cols]
            weights[:, rows, cols] += weight
    return {"y": total / weights}
