"""Oracle of the dequant_nvfp4 task: tables of all values that 4 bits and 8 bits can have."""

import torch

VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def inputs(config, generator):
    """Draw the quantised bits of normal weights, and scales over the whole range of 8 bits.

    Most scales lie within a factor of four; one in sixteen is anything, also zero or subnormal.
    """
    rows, groups = config["rows"], config["groups"]
    table = torch.tensor(VALUES)
    drawn = 2.5 * torch.randn(rows, groups * 16, generator=generator)
    nearest = torch.bucketize(drawn.abs(), (table[1:] + table[:-1]) / 2)
    bits = (nearest + 8 * (drawn < 0)).to(torch.uint8)
    usual = torch.randint(0x60, 0x70, (rows, groups), generator=generator)
    strange = torch.randint(0, 0x7F, (rows, groups), generator=generator)
    rare = torch.rand(rows, groups, generator=generator) < 1 / 16
    return {
        "packed": bits[:, 0::2] | (bits[:, 1::2] << 4),
        "scale": torch.where(rare, strange, usual).to(torch.uint8),
        "tensor_scale": 0.01 + 0.03 * torch.rand(1, generator=generator),
    }


def reference(packed, scale, tensor_scale, rows, groups, **_):
    """Return w [rows, 16 * groups]."""
    table = torch.tensor((*VALUES, *(-v for v in VALUES)), dtype=tensor_scale.dtype)
    bits = torch.stack((packed % 16, packed // 16), dim=-1).reshape(rows, groups, 16)
    value = table.to(packed.device)[bits.long()]
    factor = scale.view(torch.float8_e4m3fn).to(torch.float32).to(tensor_scale.dtype)
    return {"w": (value * (factor * tensor_scale)[..., None]).flatten(1)}
