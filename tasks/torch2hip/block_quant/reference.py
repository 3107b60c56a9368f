"""Oracle and PyTorch baseline of the block_quant task."""

import torch


def inputs(config, generator):
    """Draw x, normal, with blocks, rows and columns that differ in scale, and a few outliers."""
    rows, cols = 128 * config["down"], 128 * config["across"]
    of_row = 0.3 + torch.rand(rows, 1, generator=generator)
    of_col = 0.3 + torch.rand(cols, generator=generator)
    x = 3.0 * of_row * of_col * torch.randn(rows, cols, generator=generator)
    outlier = torch.rand(rows, cols, generator=generator) < 1e-4
    return {"x": torch.where(outlier, 8.0 * x, x).to(config["dtype"])}


def reference(x, down, across, **_):
    """Return q and its transpose qt, not rounded yet, and scale [down, across]."""
    blocks = x.reshape(down, 128, across, 128)
    scale = blocks.abs().amax(dim=(1, 3), keepdim=True) / 127
    q = torch.where(scale > 0, blocks / scale, 0.0).reshape(x.shape)
    return {"q": q, "qt": q.T.contiguous(), "scale": scale.reshape(down, across)}


def baseline(x, down, across, **_):
    """One kernel for each step, in float32."""
    blocks = x.float().view(down, 128, across, 128)
    scale = blocks.abs().amax(dim=(1, 3), keepdim=True).div_(127)
    inverse = torch.where(scale > 0, 1.0 / scale, 0.0)
    q = blocks.mul(inverse).round_().clamp_(-127, 127).to(torch.int8).view(x.shape)
    return {"q": q, "qt": q.T.contiguous(), "scale": scale.view(down, across)}
