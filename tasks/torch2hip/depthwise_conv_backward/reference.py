"""Oracle and PyTorch baseline of the depthwise_conv_backward task."""

import torch
from torch.nn.functional import pad


def inputs(config, generator):
    """Draw maps with a mean a channel, filters whose centre weighs most, and gradients.

    Gradients have a size an image and a mean a channel, so that their sums count.
    """
    images, channels, size = config["images"], config["channels"], config["size"]
    shape = (images, channels, config["height"], config["width"])
    dtype = config["dtype"]
    x = torch.randn(channels, 1, 1, generator=generator) + torch.randn(shape, generator=generator)
    weight = torch.randn(channels, size, size, generator=generator) / size
    weight[:, size // 2, size // 2] += 1.0
    mean = 0.2 * torch.randn(channels, 1, 1, generator=generator)
    steep = 0.2 + torch.rand(images, 1, 1, 1, generator=generator)
    dy = steep * (mean + torch.randn(shape, generator=generator))
    return {"x": x.to(dtype), "weight": weight.to(dtype), "dy": dy.to(dtype)}


def reference(x, weight, dy, height, width, size, **_):
    """Return dx, dweight and dbias: products with shifted maps, one shift a time."""
    around = (size // 2,) * 4
    x_wide, dy_wide = pad(x, around), pad(dy, around)
    dx, dweight = torch.zeros_like(x), torch.empty_like(weight)
    for u in range(size):
        for v in range(size):
            here = slice(u, u + height), slice(v, v + width)
            opposite = weight[:, size - 1 - u, size - 1 - v, None, None]
            dx += opposite * dy_wide[:, :, here[0], here[1]]
            dweight[:, u, v] = (dy * x_wide[:, :, here[0], here[1]]).sum(dim=(0, 2, 3))
    return {"dx": dx, "dweight": dweight, "dbias": dy.sum(dim=(0, 2, 3))}


def baseline(x, weight, dy, channels, size, **_):
    """PyTorch's own gradients of a convolution by groups, in float32, and a sum.

    The convolution's own sum of dy adds pixel by pixel on CPUs, and loses what rows cancel.
    """
    half, wide = [size // 2] * 2, dy.float()
    dx, dweight, _ = torch.ops.aten.convolution_backward(
        wide,
        x.float(),
        weight.float()[:, None],
        None,
        [1, 1],
        half,
        [1, 1],
        False,  # noqa: FBT003 - not transposed
        [0, 0],
        channels,
        [True, True, False],
    )
    return {"dx": dx.to(x.dtype), "dweight": dweight[:, 0], "dbias": wide.sum(dim=(0, 2, 3))}
