"""Oracle of the dequant_int4 task: values less their group's zero, times its scale."""

import torch


def inputs(config, generator):
    """Draw values, scales and zeros as those of normal weights quantised by group.

    Values crowd around their group's zero, which is far from the middle in a few groups; scales
    differ by row and by group.
    """
    rows, groups, dtype = config["rows"], config["groups"], config["dtype"]
    zero = torch.randint(5, 11, (rows, groups, 1), generator=generator)
    odd = torch.rand(rows, groups, 1, generator=generator) < 0.1
    zero = torch.where(odd, torch.randint(0, 16, zero.shape, generator=generator), zero)
    spread = 2.5 * torch.randn(rows, groups, 128, generator=generator)
    value = (zero + spread).round().clamp(0, 15).to(torch.uint8).reshape(rows, -1)
    of_row = 0.02 + 0.08 * torch.rand(rows, 1, generator=generator)
    scale = of_row * (0.5 + torch.rand(rows, groups, generator=generator))
    return {
        "packed": value[:, 0::2] | (value[:, 1::2] << 4),
        "scale": scale.to(dtype),
        "zero": zero[..., 0].to(torch.uint8),
    }


def reference(packed, scale, zero, rows, groups, **_):
    """Return w [rows, 128 * groups]."""
    value = torch.stack((packed % 16, packed // 16), dim=-1).reshape(rows, groups, 128)
    centred = value.to(scale.dtype) - zero[..., None].to(scale.dtype)
    return {"w": (centred * scale[..., None]).flatten(1)}
