"""Oracle and PyTorch baseline of the channel_quant task."""

import torch


def inputs(config, generator):
    """Draw keys whose columns have an offset and a size, a few of them large, as after rotation."""
    rows, cols = 128 * config["groups"], config["cols"]
    offset = torch.randn(cols, generator=generator)
    size = 3.0 + 3.0 * torch.rand(cols, generator=generator)
    large = torch.rand(cols, generator=generator) < 0.03
    x = offset + size * torch.randn(rows, cols, generator=generator)
    return {"x": torch.where(large, 6.0 * x, x).to(config["dtype"])}


def reference(x, groups, cols, **_):
    """Return q [128 * groups, cols], not rounded yet, step and zero [groups, cols]."""
    parts = x.reshape(groups, 128, cols)
    low = parts.amin(dim=1, keepdim=True)
    step = (parts.amax(dim=1, keepdim=True) - low) / 255
    q = torch.where(step > 0, (parts - low) / step, 0.0).reshape(x.shape)
    return {"q": q, "step": step[:, 0], "zero": low[:, 0]}


def baseline(x, groups, cols, **_):
    """Both limits at once, and one kernel for each step, in float32."""
    parts = x.float().view(groups, 128, cols)
    low, high = torch.aminmax(parts, dim=1, keepdim=True)
    step = (high - low).div_(255)
    q = ((parts - low) / step.masked_fill(step == 0, 1.0)).round_().clamp_(0, 255)
    zero = low[:, 0].to(x.dtype)
    return {"q": q.to(torch.uint8).view(x.shape), "step": step[:, 0], "zero": zero}
