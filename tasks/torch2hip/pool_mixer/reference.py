"""Oracle and PyTorch baseline of the pool_mixer task."""

import torch
from torch.nn.functional import avg_pool2d, conv2d


def inputs(config, generator):
    """Draw normalised maps that are smooth in places, a residual stream, and layer scales."""
    images, channels = config["images"], config["channels"]
    shape = (images, channels, config["height"], config["width"])
    coarse = torch.randn(images, channels, 1, config["width"], generator=generator)
    n = 0.7 * coarse + 0.7 * torch.randn(shape, generator=generator)
    size = 0.5 + 1.5 * torch.rand(channels, 1, 1, generator=generator)
    x = size * torch.randn(shape, generator=generator)
    gamma = 0.6 + 0.4 * torch.randn(channels, generator=generator)
    return {"n": n.to(config["dtype"]), "x": x.to(config["dtype"]), "gamma": gamma}


def reference(n, x, gamma, height, width, **_):
    """Return y: sums of windows by a convolution with ones, divided by their sizes."""
    ones = n.new_ones(1, 1, 3, 3)
    sums = conv2d(n.reshape(-1, 1, height, width), ones, padding=1)
    sizes = conv2d(n.new_ones(1, 1, height, width), ones, padding=1)
    return {"y": x + gamma[:, None, None] * ((sums / sizes).reshape(n.shape) - n)}


def baseline(n, x, gamma, **_):
    """PyTorch's own pooling, a difference, and a sum with a factor, all in float32."""
    wide = n.float()
    mixed = avg_pool2d(wide, 3, 1, 1, count_include_pad=False) - wide
    return {"y": torch.addcmul(x.float(), mixed, gamma[:, None, None]).to(x.dtype)}
