"""Oracle of the causal_conv1d_backward task: products of shifted, padded sequences."""

import torch
from torch.nn.functional import pad


def inputs(config, generator):
    """Draw x, correlated in time as features of a text are, taps, a bias and gradients dy.

    Taps and biases are those of a uniform initialisation, about as large as trained ones.
    """
    batch, channels, seq = config["batch"], config["channels"], config["seq"]
    width, dtype = config["width"], config["dtype"]
    scale = 0.3 + 2.0 * torch.rand(channels, 1, generator=generator)
    noise = torch.randn(batch, channels, seq + 1, generator=generator)
    x = scale * (noise[..., 1:] + 0.5 * noise[..., :-1])
    weight = 2.0 * torch.rand(channels, width, generator=generator) - 1.0
    bias = torch.rand(channels, generator=generator) - 0.5
    dy = torch.randn(batch, channels, seq, generator=generator)
    return {
        "x": x.to(dtype),
        "weight": weight.to(dtype),
        "bias": bias.to(dtype),
        "dy": dy.to(dtype),
    }


def reference(x, weight, bias, dy, seq, width, **_):
    """Return dx [batch, channels, seq], dweight [channels, width] and dbias [channels]."""
    shifted = pad(x, (width - 1, 0)).unfold(-1, seq, 1)  # [batch, channels, width, seq]
    z = torch.einsum("bcjt,cj->bct", shifted, weight) + bias[:, None]
    share = torch.sigmoid(z)
    gradient = dy * (share + z * share * (1.0 - share))
    after = pad(gradient, (0, width - 1)).unfold(-1, seq, 1)
    return {
        "dx": torch.einsum("bcjt,cj->bct", after, weight.flip(-1)),
        "dweight": torch.einsum("bcjt,bct->cj", shifted, gradient),
        "dbias": gradient.sum(dim=(0, 2)),
    }
