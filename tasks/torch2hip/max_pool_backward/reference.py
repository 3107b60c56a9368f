"""Oracle and PyTorch baseline of the max_pool_backward task."""

import torch
from torch.nn.functional import max_pool2d


def inputs(config, generator):
    """Draw gradients with a size an image, and the places that pooling finds after a ReLU.

    More than half of the pooled elements are zero, so many windows have several largest ones,
    and elements of zero have the gradients of up to four windows.
    """
    images, channels = config["images"], config["channels"]
    height, width = config["height"], config["width"]
    x = torch.relu(torch.randn(images, channels, height, width, generator=generator) - 0.3)
    index = max_pool2d(x, 3, 2, 1, return_indices=True)[1]
    size = 0.2 + torch.rand(images, 1, 1, 1, generator=generator)
    dy = size * torch.randn(index.shape, generator=generator)
    return {"dy": dy.to(config["dtype"]), "index": index}


def reference(dy, index, images, channels, height, width, **_):
    """Return dx [images, channels, height, width]."""
    dx = dy.new_zeros(images * channels, height * width)
    dx.scatter_add_(1, index.flatten(0, 1).flatten(1), dy.flatten(0, 1).flatten(1))
    return {"dx": dx.reshape(images, channels, height, width)}


def baseline(dy, index, images, channels, height, width, **_):
    """PyTorch's own kernel, which needs the shape of its input alone."""
    x = dy.new_empty(images, channels, height, width)
    backward = torch.ops.aten.max_pool2d_with_indices_backward
    return {"dx": backward(dy, x, [3, 3], [2, 2], [1, 1], [1, 1], ceil_mode=False, indices=index)}
