"""Oracle and PyTorch baseline of the flow_warp task."""

import torch
from torch.nn.functional import grid_sample


def inputs(config, generator):
    """Draw maps with a mean a channel, and flows of an object, a camera and a little noise.

    Half of the columns move by another step than the others; a few places lead far outside.
    """
    images, channels = config["images"], config["channels"]
    height, width = config["height"], config["width"]
    mean = torch.randn(channels, 1, 1, generator=generator)
    x = mean + torch.randn(images, channels, height, width, generator=generator)
    camera = 3.0 * torch.randn(images, 2, 1, 1, generator=generator)
    thing = 6.0 * torch.randn(images, 2, 1, 1, generator=generator)
    flow = torch.where(torch.arange(width) * 2 < width, camera, camera + thing)
    flow = flow + 0.5 * torch.randn(images, 2, height, width, generator=generator)
    lost = torch.rand(images, 1, height, width, generator=generator) < 0.02
    return {"x": x.to(config["dtype"]), "flow": torch.where(lost, 40.0 * flow, flow)}


def reference(x, flow, images, channels, height, width, **_):
    """Return y: four pixels, gathered and weighted.

    The numbers of rows and columns are doubles whatever the dtype: the judge moves the results of
    each step in float32 to find how far rounding goes. It may move a place, but must not change a
    pixel's number.
    """
    row = (torch.arange(height, device=x.device)[:, None] + flow[:, 1]).double()
    col = (torch.arange(width, device=x.device) + flow[:, 0]).double()
    top, left = row.floor(), col.floor()
    flat = x.flatten(2)
    y = torch.zeros_like(x)
    for r, c in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
        weight = (1 - (row - r).abs()) * (1 - (col - c).abs()) * inside
        place = (r.clamp(0, height - 1) * width + c.clamp(0, width - 1)).long()
        place = place.reshape(images, 1, -1).expand(-1, channels, -1)
        y += weight[:, None].to(x) * flat.gather(2, place).reshape(x.shape)
    return {"y": y}


def baseline(x, flow, height, width, **_):
    """PyTorch's own sampling, with coordinates between -1 and 1, in float32."""
    row = torch.arange(height, device=x.device)[:, None] + flow[:, 1]
    col = torch.arange(width, device=x.device) + flow[:, 0]
    grid = torch.stack(((2 * col + 1) / width - 1, (2 * row + 1) / height - 1), dim=-1)
    return {"y": grid_sample(x.float(), grid, align_corners=False).to(x.dtype)}
