"""Oracle of the correlation task: products with shifted maps, one shift a time."""

import torch
from torch.nn.functional import leaky_relu, pad


def inputs(config, generator):
    """Draw features of one map, and those of another that shows the same, moved by a few pixels.

    Channels differ in size. Noise is as large as what both maps have in common.
    """
    images, channels = config["images"], config["channels"]
    shape = (images, channels, config["height"], config["width"])
    size = 0.5 + 1.5 * torch.rand(channels, 1, 1, generator=generator)
    seen = torch.randn(shape, generator=generator)
    moves = torch.randint(-config["reach"], config["reach"] + 1, (2,), generator=generator)
    moved = seen.roll(moves.tolist(), dims=(2, 3))
    a = size * (seen + 0.5 * torch.randn(shape, generator=generator))
    b = size * (moved + 0.5 * torch.randn(shape, generator=generator))
    return {"a": a.to(config["dtype"]), "b": b.to(config["dtype"])}


def reference(a, b, height, width, reach, **_):
    """Return y, with the shifts along the last axis."""
    wide = pad(b, (reach, reach, reach, reach))
    y = [
        (a * wide[:, :, up : up + height, left : left + width]).mean(dim=1)
        for up in range(2 * reach + 1)
        for left in range(2 * reach + 1)
    ]
    return {"y": leaky_relu(torch.stack(y, dim=-1), 0.1)}
