"""Oracle of the wave_3d task: a sum of shifted fields for each axis."""

import torch
from torch.nn.functional import pad

TAPS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


def inputs(config, generator):
    """Draw a wave field, its past, and layers of rock whose speeds differ, with a body of salt.

    The field is noise that was smoothed along each axis, so that its Laplacian is neither tiny nor
    larger than the field.
    """
    shape = config["depth"], config["height"], config["width"]

    def smooth():
        field = torch.randn(shape, generator=generator)
        for axis in range(3):
            field = field + 0.8 * field.roll(1, dims=axis)
        return 0.5 * field

    layer = (0.05 + 0.2 * torch.rand(shape[0], generator=generator)).sort().values
    speed = layer[:, None, None] * (0.9 + 0.2 * torch.rand(shape, generator=generator))
    salt = torch.rand(shape[1:], generator=generator) < 0.3
    now = smooth()
    return {
        "now": now,
        "before": 0.9 * now + 0.3 * smooth(),
        "speed": torch.where(salt, 0.25, speed),
    }


def reference(now, before, speed, **_):
    """Return after [depth, height, width]."""
    laplacian = 3 * TAPS[0] * now
    for axis in range(3):
        size = now.shape[axis]
        edges = [0, 0] * (2 - axis) + [4, 4]
        wide = pad(now, edges)
        for away in range(1, 5):
            for place in (4 - away, 4 + away):
                laplacian = laplacian + TAPS[away] * wide.narrow(axis, place, size)
    return {"after": 2 * now - before + speed * laplacian}
