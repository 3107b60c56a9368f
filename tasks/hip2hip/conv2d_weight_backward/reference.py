"""Oracle of the conv2d_weight_backward task: a product of all pixels for each of nine shifts."""

import torch
from torch.nn.functional import pad


def inputs(config, generator):
    """Draw maps as behind a ReLU, and gradients with a size an image and a mean a channel."""
    images, height, width = config["images"], config["height"], config["width"]
    offset = 0.5 * torch.randn(config["ins"], generator=generator)
    x = torch.randn(images, height, width, config["ins"], generator=generator) + offset
    size = 0.2 + torch.rand(images, 1, 1, 1, generator=generator)
    mean = 0.2 * torch.randn(config["outs"], generator=generator)
    dy = size * (mean + torch.randn(images, height, width, config["outs"], generator=generator))
    return {"x": torch.relu(x).to(config["dtype"]), "dy": dy.to(config["dtype"])}


def reference(x, dy, height, width, ins, outs, **_):
    """Return dweight [outs, 3, 3, ins] and dbias [outs]."""
    wide = pad(x, (0, 0, 1, 1, 1, 1))
    flat = dy.reshape(-1, outs).T
    dweight = dy.new_empty(outs, 3, 3, ins)
    for u in range(3):
        for v in range(3):
            dweight[:, u, v] = flat @ wide[:, u : u + height, v : v + width].reshape(-1, ins)
    return {"dweight": dweight, "dbias": flat.sum(dim=1)}
