"""Oracle and PyTorch baseline of the gated_rmsnorm task."""

import torch
from torch.nn.functional import rms_norm, silu


def inputs(config, generator):
    """Draw rows whose groups differ in size, gates wide enough for both tails, weights near 1."""
    rows, groups, size, dtype = (config[k] for k in ("rows", "groups", "size", "dtype"))
    scale = 0.1 + 3.0 * torch.rand(rows, groups, 1, generator=generator)
    x = (scale * torch.randn(rows, groups, size, generator=generator)).flatten(1)
    z = 2.0 * torch.randn(rows, groups * size, generator=generator)
    weight = 1.0 + 0.3 * torch.randn(groups * size, generator=generator)
    return {"x": x.to(dtype), "z": z.to(dtype), "weight": weight.to(dtype)}


def reference(x, z, weight, eps, groups, **_):
    """Return y [rows, groups * size]."""
    gated = (x * z * torch.sigmoid(z)).unflatten(-1, (groups, -1))
    normal = gated / (gated.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return {"y": normal.flatten(1) * weight}


def baseline(x, z, weight, eps, groups, size, **_):
    """PyTorch's own kernels in float32: SiLU, a product, and RMS normalisation."""
    gated = (x.float() * silu(z.float())).unflatten(-1, (groups, size))
    normal = rms_norm(gated, (size,), eps=eps).flatten(1)
    return {"y": (normal * weight.float()).to(x.dtype)}
