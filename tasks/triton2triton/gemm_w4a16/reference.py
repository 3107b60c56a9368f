"""Oracle of the gemm_w4a16 task: the whole weight matrix dequantised, and one product."""

import torch


def inputs(config, generator):
    """Draw activations with a few large columns, and weights as quantised normal ones.

    Values crowd around their group's zero; scales differ by row and by group.
    """
    m, n, groups, dtype = config["m"], config["n"], config["groups"], config["dtype"]
    loud = 1.0 + 9.0 * (torch.rand(groups * 128, generator=generator) < 0.02)
    x = loud * torch.randn(m, groups * 128, generator=generator)
    zero = torch.randint(5, 11, (n, groups, 1), generator=generator)
    spread = 2.5 * torch.randn(n, groups, 128, generator=generator)
    value = (zero + spread).round().clamp(0, 15).to(torch.uint8).reshape(n, -1)
    scale = (0.2 + torch.rand(n, 1, generator=generator)) / (128 * groups) ** 0.5
    scale = scale * (0.5 + torch.rand(n, groups, generator=generator))
    return {
        "x": x.to(dtype),
        "packed": value[:, 0::2] | (value[:, 1::2] << 4),
        "scale": scale.to(dtype),
        "zero": zero[..., 0].to(torch.uint8),
    }


def reference(x, packed, scale, zero, n, groups, **_):
    """Return y [m, n]."""
    value = torch.stack((packed % 16, packed // 16), dim=-1).reshape(n, groups, 128)
    centred = value.to(scale.dtype) - zero[..., None].to(scale.dtype)
    return {"y": x @ (centred * scale[..., None]).flatten(1).T}
