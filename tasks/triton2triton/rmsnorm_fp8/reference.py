"""Oracle of the rmsnorm_fp8 task: the nearest of all positive codes, by bisection."""

import torch


def inputs(config, generator):
    """Draw a layer's output and a residual with a scale a row and outliers, and weight near 1.

    A tenth of the elements is tiny, so that numbers of both signs round to zero.
    """
    rows, groups, dtype = config["rows"], config["groups"], config["dtype"]
    scale = 0.1 + 2.0 * torch.rand(rows, 1, generator=generator)
    loud = 1.0 + 15.0 * (torch.rand(groups * 128, generator=generator) < 0.01)
    residual = scale * loud * torch.randn(rows, groups * 128, generator=generator)
    x = 0.5 * torch.randn(rows, groups * 128, generator=generator)
    tiny = torch.where(torch.rand(rows, groups * 128, generator=generator) < 0.1, 1e-6, 1.0)
    x, residual = tiny * x, tiny * residual
    weight = 1.0 + 0.3 * torch.randn(groups * 128, generator=generator)
    return {"x": x.to(dtype), "residual": residual.to(dtype), "weight": weight.to(dtype)}


def reference(x, residual, weight, eps, groups, **_):
    """Return sum_new and code [rows, 128 * groups], not rounded yet, and scale [rows, groups]."""
    h = x + residual
    normal = h * torch.rsqrt(h.square().mean(dim=-1, keepdim=True) + eps) * weight
    by_group = normal.unflatten(1, (groups, 128))
    scale = by_group.abs().amax(dim=-1) / 448
    known_scale = scale.float()[..., None] > 0  # of numbers too small for float32 there is none
    steps = torch.where(known_scale, by_group / scale[..., None], 0.0).flatten(1)
    codes = torch.arange(127, dtype=torch.uint8, device=x.device)
    known = codes.view(torch.float8_e4m3fn).to(h.dtype)
    size = steps.abs().clamp_max(448)
    below = (torch.searchsorted(known, size, right=True) - 1).clamp_max(125)
    code = below + (size - known[below]) / (known[below + 1] - known[below])
    return {"sum_new": h, "code": code + 128 * torch.signbit(steps), "scale": scale}
