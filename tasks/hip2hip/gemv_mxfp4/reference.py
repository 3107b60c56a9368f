"""Oracle of the gemv_mxfp4 task: a product with the decoded weights."""

import torch

VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
PART = 1 << 24
"""Weights that are in memory at once."""


def inputs(config, generator):
    """Draw x with a few large columns, the quantised bits of normal weights, scales and a bias.

    Outputs are of the order of one. Scales differ by powers of two; one in sixteen is far smaller.
    """
    batch, groups, outs = config["batch"], config["groups"], config["outs"]
    size = torch.where(torch.rand(32 * groups, generator=generator) < 0.02, 5.0, 1.0)
    x = size * torch.randn(batch, 32 * groups, generator=generator)
    edges = (torch.tensor(VALUES)[1:] + torch.tensor(VALUES)[:-1]) / 2
    packed = torch.empty(outs, 16 * groups, dtype=torch.uint8)
    for part in packed.split(max(1, PART // (32 * groups))):
        drawn = 2.5 * torch.randn(*part.shape, 2, generator=generator)
        bits = torch.bucketize(drawn.abs(), edges) + 8 * (drawn < 0)
        part.copy_(bits[..., 0] + 16 * bits[..., 1])
    usual = 127 - round(torch.tensor(100.0 * groups).log2().item() / 2)
    scale = usual + torch.randint(-1, 2, (outs, groups), generator=generator)
    rare = torch.rand(outs, groups, generator=generator) < 1 / 16
    small = torch.randint(1, 100, (outs, groups), generator=generator)
    return {
        "x": x.to(config["dtype"]),
        "packed": packed,
        "scale": torch.where(rare, scale.minimum(small + 10), scale).to(torch.uint8),
        "bias": (0.3 * torch.randn(outs, generator=generator)).to(config["dtype"]),
    }


def reference(x, packed, scale, bias, groups, **_):
    """Return y [batch, outs]."""
    table = torch.tensor((*VALUES, *(-v for v in VALUES)), dtype=x.dtype, device=x.device)
    rows = max(1, PART // (32 * groups))
    parts = []
    for bits, power in zip(packed.split(rows), scale.split(rows), strict=True):
        pairs = torch.stack((bits % 16, bits // 16), dim=-1).reshape(-1, groups, 32)
        factor = torch.exp2(power.to(x.dtype) - 127)
        parts.append(x @ (table[pairs.long()] * factor[..., None]).flatten(1).T)
    return {"y": torch.cat(parts, dim=1) + bias}
