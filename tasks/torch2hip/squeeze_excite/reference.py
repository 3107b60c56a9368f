"""Oracle and PyTorch baseline of the squeeze_excite task."""

import torch
from torch.nn.functional import linear, silu


def inputs(config, generator):
    """Draw maps whose channels have means of their own in each image, weights and biases.

    Means are large beside their rounding, so that gates differ between images and channels.
    """
    images, channels, hidden = config["images"], config["channels"], config["hidden"]
    mean = 1.5 * torch.randn(images, channels, 1, 1, generator=generator)
    shape = (images, channels, config["height"], config["width"])
    tensors = {
        "x": mean + torch.randn(shape, generator=generator),
        "w1": torch.randn(hidden, channels, generator=generator) * channels**-0.5,
        "b1": 0.3 * torch.randn(hidden, generator=generator),
        "w2": 2.0 * torch.randn(channels, hidden, generator=generator) * hidden**-0.5,
        "b2": 0.5 * torch.randn(channels, generator=generator),
    }
    return {name: tensor.to(config["dtype"]) for name, tensor in tensors.items()}


def reference(x, w1, b1, w2, b2, **_):
    """Return y [images, channels, height, width]."""
    h = silu(x.flatten(2).mean(dim=-1) @ w1.T + b1)
    return {"y": x * torch.sigmoid(h @ w2.T + b2)[..., None, None]}


def baseline(x, w1, b1, w2, b2, **_):
    """A mean, two linear layers in float32, and a product."""
    mean = x.mean(dim=(2, 3), dtype=torch.float32)
    h = silu(linear(mean, w1.float(), b1.float()))
    gate = torch.sigmoid(linear(h, w2.float(), b2.float()))
    return {"y": (x * gate[..., None, None]).to(x.dtype)}
