"""Oracle of the gemm_mxfp4 task: a table of the codes, the whole weight matrix, and one product."""

import torch

VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def inputs(config, generator):
    """Draw activations with a few large columns, and weights as MXFP4 has normal ones.

    Each group's power is the one that its largest weight asks for; rows differ in size.
    """
    m, n, groups, dtype = config["m"], config["n"], config["groups"], config["dtype"]
    loud = 1.0 + 9.0 * (torch.rand(groups * 32, generator=generator) < 0.02)
    x = loud * torch.randn(m, groups * 32, generator=generator)
    size = (0.2 + torch.rand(n, 1, 1, generator=generator)) / (32 * groups) ** 0.5
    weight = size * torch.randn(n, groups, 32, generator=generator)
    power = weight.abs().amax(dim=-1).log2().floor() - 2.0
    scaled = weight / torch.exp2(power)[..., None]
    table = torch.tensor(VALUES)
    between = (table[1:] + table[:-1]) / 2
    code = torch.bucketize(scaled.abs(), between) + 8 * (scaled < 0)
    code = code.to(torch.uint8).reshape(n, -1)
    return {
        "x": x.to(dtype),
        "packed": code[:, 0::2] | (code[:, 1::2] << 4),
        "power": (power + 127).to(torch.uint8),
        "bias": (0.3 * torch.randn(n, generator=generator)).to(dtype),
    }


def reference(x, packed, power, bias, n, groups, **_):
    """Return y [m, n]."""
    code = torch.stack((packed % 16, packed // 16), dim=-1).reshape(n, groups, 32).long()
    table = torch.tensor([*VALUES, *(-value for value in VALUES)], dtype=x.dtype, device=x.device)
    scale = torch.exp2(power.to(x.dtype) - 127)[..., None]
    return {"y": torch.addmm(bias, x, (table[code] * scale).flatten(1).T)}
