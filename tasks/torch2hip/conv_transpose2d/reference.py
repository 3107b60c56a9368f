"""Oracle and PyTorch baseline of the conv_transpose2d task."""

import torch
from torch.nn.functional import conv_transpose2d

torch.backends.cudnn.allow_tf32 = False  # PyTorch lets only convolutions use it


def inputs(config, generator):
    """Draw maps as behind a ReLU, weights that keep the size of values, and a bias."""
    images, ins, outs = config["images"], config["ins"], config["outs"]
    offset = 0.5 * torch.randn(ins, 1, 1, generator=generator)
    shape = (images, ins, config["height"], config["width"])
    x = torch.relu(offset + torch.randn(shape, generator=generator))
    weight = torch.randn(ins, outs, 4, 4, generator=generator) * (2.0 * ins) ** -0.5
    bias = 0.3 * torch.randn(outs, generator=generator)
    tensors = {"x": x, "weight": weight, "bias": bias}
    return {name: tensor.to(config["dtype"]) for name, tensor in tensors.items()}


def reference(x, weight, bias, images, outs, height, width, **_):
    """Return y: sixteen products of channels, each added to the places it belongs to."""
    wide = x.new_zeros(images, outs, 2 * height + 2, 2 * width + 2)
    for u in range(4):
        for v in range(4):
            part = torch.einsum("ichw,co->iohw", x, weight[:, :, u, v])
            wide[:, :, u : u + 2 * height : 2, v : v + 2 * width : 2] += part
    return {"y": torch.relu(wide[:, :, 1:-1, 1:-1] + bias[:, None, None])}


def baseline(x, weight, bias, **_):
    """PyTorch's own convolution, and ReLU in place."""
    return {"y": torch.relu_(conv_transpose2d(x, weight, bias, stride=2, padding=1))}
