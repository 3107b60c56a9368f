"""Oracle of the gemm_fp8_block task: PyTorch's own E4M3, with scales spread over the matrices."""

import torch

TOP = 448.0


def coded(values):
    """The bytes of values that are rounded to E4M3."""
    return values.to(torch.float8_e4m3fn).view(torch.uint8)


def inputs(config, generator):
    """Draw activations with loud columns and weights, and quantise both by their blocks' largest.

    Blocks of weights differ in size; rows of activations do, too. Some rows have scales for larger
    values, so that many of their codes are subnormal.
    """
    m, n, depth = config["m"], config["n"], config["depth"]
    loud = 1.0 + 20.0 * (torch.rand(depth, 128, generator=generator) < 0.01)
    size = 0.2 + torch.rand(m, 1, 1, generator=generator)
    x = size * loud * torch.randn(m, depth, 128, generator=generator)
    x_scale = x.abs().amax(dim=-1) / TOP
    x_scale *= torch.where(torch.rand(m, 1, generator=generator) < 0.2, 2.0**13, 1.0)
    size = (0.3 + torch.rand(n, 1, depth, 1, generator=generator)) / (128 * depth) ** 0.5
    weight = size * torch.randn(n, 128, depth, 128, generator=generator)
    weight_scale = weight.abs().amax(dim=(1, 3)) / TOP
    return {
        "x": coded(x / x_scale[..., None]).flatten(1),
        "x_scale": x_scale,
        "weight": coded(weight / weight_scale[:, None, :, None]).reshape(n * 128, -1),
        "weight_scale": weight_scale,
    }


def reference(x, x_scale, weight, weight_scale, n, depth, **_):
    """Return y [m, 128 * n]."""
    kind = x_scale.dtype
    left = x.view(torch.float8_e4m3fn).to(kind).unflatten(1, (depth, 128))
    right = weight.view(torch.float8_e4m3fn).to(kind).reshape(n, 128, depth, 128)
    right = (right * weight_scale[:, None, :, None]).reshape(n * 128, -1)
    return {"y": (left * x_scale[..., None]).flatten(1) @ right.T}
