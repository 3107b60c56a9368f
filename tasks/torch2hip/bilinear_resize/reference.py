"""Oracle and PyTorch baseline of the bilinear_resize task."""

import torch
from torch.nn.functional import interpolate


def inputs(config, generator):
    """Draw features with a mean and a spread a channel, and edges between parts of an image."""
    images, channels = config["images"], config["channels"]
    height, width = config["height"], config["width"]
    shape = (images, channels, height, width)
    centre = torch.randn(channels, 1, 1, generator=generator)
    spread = 0.3 + torch.rand(channels, 1, 1, generator=generator)
    x = centre + spread * torch.randn(shape, generator=generator)
    side = torch.randint(0, width, (images, 1, height, 1), generator=generator)
    part = 2.0 * (torch.arange(width) < side)
    return {"x": (x + part).to(config["dtype"])}


def reference(x, height, width, new_height, new_width, **_):
    """Return y [images, channels, new_height, new_width]: rows first, then columns.

    The numbers of rows and columns are doubles whatever the dtype: the judge moves the results of
    each step in float32 to find how far rounding goes. It may move a place, but must not change a
    pixel's number.
    """
    between = x
    for axis, size, new in ((2, height, new_height), (3, width, new_width)):
        place = torch.arange(new, device=x.device, dtype=x.dtype)
        place = ((place + 0.5) * size / new - 0.5).clamp_min(0.0).double()
        first = place.floor().long().clamp_max(size - 1)
        share = (place - first).to(x.dtype).reshape(-1, *([1] * (3 - axis)))
        second = (first + 1).clamp_max(size - 1)
        low, high = between.index_select(axis, first), between.index_select(axis, second)
        between = low * (1.0 - share) + high * share
    return {"y": between}


def baseline(x, new_height, new_width, **_):
    """PyTorch's own kernel."""
    size = (new_height, new_width)
    return {"y": interpolate(x, size=size, mode="bilinear", align_corners=False)}
