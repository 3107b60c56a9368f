"""Oracle of the roi_align task: rows and columns as two small matrices for each region."""

import torch

PART = 256
"""Regions whose matrices are in memory at once."""


def inputs(config, generator):
    """Draw smooth features with a mean a channel, and boxes in and around the image.

    Boxes are from a few pixels to the whole image large. Some reach over its edges, and one in
    sixteen has a side of zero.
    """
    images, channels = config["images"], config["channels"]
    height, width, regions = config["height"], config["width"], config["regions"]
    centre = torch.randn(channels, 1, 1, generator=generator)
    x = centre + torch.randn(images, channels, height, width, generator=generator)
    sides = 4.0 * torch.tensor((width, height))
    middle = sides * (1.2 * torch.rand(regions, 2, generator=generator) - 0.1)
    half = sides * 0.02 * 25.0 ** torch.rand(regions, 2, generator=generator) / 2.0
    flat = torch.rand(regions, 2, generator=generator) < 1 / 16
    half = half.masked_fill(flat, 0.0)
    image = torch.randint(0, images, (regions,), generator=generator)
    return {
        "x": x.to(config["dtype"]),
        "box": torch.cat((middle - half, middle + half), dim=1),
        "image": image.to(torch.int32),
    }


def shares(low, high, size, length):
    """How much each of length pixels counts for each of size cells: [regions, size, length]."""
    cell = (high - low) / size
    offset = torch.arange(2 * size, device=low.device, dtype=low.dtype) * 0.5 + 0.25
    place = low[:, None] + cell[:, None] * offset
    inside = (place >= -1.0) & (place <= length)
    place = place.clamp(0.0, length - 1.0)
    pixel = torch.arange(length, device=low.device, dtype=low.dtype)
    near = (1.0 - (place[..., None] - pixel).abs()).clamp_min(0.0) * inside[..., None]
    return near.unflatten(1, (size, 2)).mean(dim=2)


def reference(x, box, image, scale, size, **_):
    """Return y [regions, channels, size, size]."""
    u = scale * box - 0.5
    ys = []
    for part in torch.arange(len(box), device=x.device).split(PART):
        rows = shares(u[part, 1], u[part, 3], size, x.shape[2]).to(x.dtype)
        columns = shares(u[part, 0], u[part, 2], size, x.shape[3]).to(x.dtype)
        for region, row, column in zip(part.tolist(), rows, columns, strict=True):
            ys.append(row @ x[image[region]] @ column.T)
    return {"y": torch.stack(ys)}
