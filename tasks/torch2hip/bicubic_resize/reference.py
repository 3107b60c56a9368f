"""Oracle and PyTorch baseline of the bicubic_resize task."""

import torch
from torch.nn.functional import interpolate


def inputs(config, generator):
    """Draw images with a mean a channel, a slope along both axes, and noise."""
    images, channels = config["images"], config["channels"]
    height, width = config["height"], config["width"]
    mean = torch.randn(images, channels, 1, 1, generator=generator)
    slope = torch.randn(2, images, channels, 1, 1, generator=generator)
    down = slope[0] * torch.linspace(-1, 1, height)[:, None]
    across = slope[1] * torch.linspace(-1, 1, width)
    noise = torch.randn(images, channels, height, width, generator=generator)
    return {"x": (mean + down + across + 0.7 * noise).to(config["dtype"])}


def weights(old, new, like):
    """The weights [new, old] of the old rows for each new one, in the dtype of ``like``.

    The numbers of rows are doubles whatever the dtype: the judge moves the results of each step in
    float32 to find how far rounding goes. It may move a place, but must not change a row's number.
    """
    place = (torch.arange(new, device=like.device).to(like) + 0.5) * old / new - 0.5
    place = place.double()
    first = place.floor()
    matrix = place.new_zeros(new, old)
    for tap in range(-1, 3):
        d = (place - first - tap).abs()
        near = (1.25 * d - 2.25) * d * d + 1
        far = ((-0.75 * d + 3.75) * d - 6) * d + 3
        column = (first + tap).clamp(0, old - 1).long()
        matrix.scatter_add_(1, column[:, None], torch.where(d <= 1, near, far)[:, None])
    return matrix.to(like)


def reference(x, height, width, new_height, new_width, **_):
    """Return y: products with the weights of rows and of columns."""
    return {"y": weights(height, new_height, x) @ x @ weights(width, new_width, x).T}


def baseline(x, new_height, new_width, **_):
    """PyTorch's own interpolation in float32."""
    size = (new_height, new_width)
    y = interpolate(x.float(), size=size, mode="bicubic", align_corners=False)
    return {"y": y.to(x.dtype)}
