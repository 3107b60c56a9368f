"""Oracle of the conv2d_input_backward task: PyTorch's transposed convolution."""

import torch
from torch.nn.functional import conv_transpose2d


def inputs(config, generator):
    """Draw what passed a ReLU of normal values, gradients with a size a filter, and weights.

    About half of it passed, in some filters hardly anything.
    """
    images, stride = config["images"], config["stride"]
    rows, columns = (-(-config[side] // stride) for side in ("height", "width"))
    channels, filters, dtype = config["channels"], config["filters"], config["dtype"]
    shape = images, rows, columns, filters
    u = torch.randn(shape, generator=generator) + 0.7 * torch.randn(filters, generator=generator)
    size = 0.3 + torch.rand(filters, generator=generator)
    dy = size * (0.2 + torch.randn(shape, generator=generator))
    spread = (0.5 + torch.rand(filters, 1, 1, 1, generator=generator)) * (2 / (9 * filters)) ** 0.5
    weight = spread * torch.randn(filters, 3, 3, channels, generator=generator)
    return {"passed": (u > 0).to(torch.uint8), "dy": dy.to(dtype), "weight": weight.to(dtype)}


def reference(passed, dy, weight, stride, height, width, **_):
    """Return dx [images, height, width, channels]."""
    gradient = torch.where(passed != 0, dy, 0.0).permute(0, 3, 1, 2)
    left = [(size - 1) % stride for size in (height, width)]
    dx = conv_transpose2d(
        gradient, weight.permute(0, 3, 1, 2), stride=stride, padding=1, output_padding=left
    )
    return {"dx": dx.permute(0, 2, 3, 1).contiguous()}
