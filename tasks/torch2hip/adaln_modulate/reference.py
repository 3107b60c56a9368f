"""Oracle and PyTorch baseline of the adaln_modulate task."""

import torch
from torch.nn.functional import layer_norm


def inputs(config, generator):
    """Draw rows with an offset and a scale each, and settings that differ by image and column.

    Gates are small and of either sign, and some columns are much louder than others.
    """
    batch, seq, cols = config["batch"], config["seq"], config["cols"]
    dtype = config["dtype"]
    loud = 1.0 + 8.0 * (torch.rand(cols, generator=generator) < 0.02)
    size = loud * (0.3 + 2.0 * torch.rand(batch, seq, 1, generator=generator))
    offset = torch.randn(batch, seq, 1, generator=generator)
    x = offset + size * torch.randn(batch, seq, cols, generator=generator)
    branch = torch.randn(batch, seq, cols, generator=generator)
    gate, shift, scale = (0.5 * torch.randn(batch, cols, generator=generator) for _ in range(3))
    return {
        "x": x.to(dtype),
        "branch": branch.to(dtype),
        "gate": gate.to(dtype),
        "shift": shift.to(dtype),
        "scale": scale.to(dtype),
    }


def reference(x, branch, gate, shift, scale, eps, **_):
    """Return sum and y [batch, seq, cols]."""
    total = x + gate[:, None] * branch
    centred = total - total.mean(dim=-1, keepdim=True)
    normal = centred / (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return {"sum": total, "y": normal * (1.0 + scale[:, None]) + shift[:, None]}


def baseline(x, branch, gate, shift, scale, eps, **_):
    """PyTorch's own kernels in float32: products with sums, and a layer normalisation."""
    total = torch.addcmul(x.float(), gate[:, None].float(), branch.float())
    normal = layer_norm(total, (total.shape[-1],), eps=eps)
    y = torch.addcmul(shift[:, None].float(), normal, 1.0 + scale[:, None].float())
    return {"sum": total.to(x.dtype), "y": y.to(x.dtype)}
