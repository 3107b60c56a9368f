"""Oracle of the gemm_fp8 task: a product of the decoded and scaled matrices."""

import torch

MOST = 448.0


def inputs(config, generator):
    """Draw the bits and scales of normal matrices whose blocks differ in size.

    In each block the largest element is near the largest of the format, as quantisation makes it,
    and a few columns of a are far larger than the others. c is of the order of one.
    """
    m, n, groups = config["m"], config["n"], config["groups"]

    def bits(rows, large):
        drawn = torch.randn(rows, groups, 128, generator=generator)
        drawn *= torch.where(torch.rand(groups, 128, generator=generator) < large, 6.0, 1.0)
        most = drawn.abs().amax(dim=-1, keepdim=True)
        return (drawn * (MOST / most)).to(torch.float8_e4m3fn).view(torch.uint8).flatten(1)

    a_scale = (0.5 + torch.rand(m, groups, generator=generator)) / 120
    b_scale = (0.5 + torch.rand((n - 1) // 128 + 1, groups, generator=generator)) / 120
    return {
        "a": bits(m, 0.01),
        "b": bits(n, 0.0),
        "a_scale": a_scale,
        "b_scale": b_scale / (128 * groups) ** 0.5,
    }


def reference(a, b, a_scale, b_scale, m, n, groups, **_):
    """Return c [m, n]."""
    kind = a_scale.dtype
    left = a.view(torch.float8_e4m3fn).to(torch.float32).to(kind).reshape(m, groups, 128)
    right = b.view(torch.float8_e4m3fn).to(torch.float32).to(kind).reshape(n, groups, 128)
    of_row = b_scale.repeat_interleave(128, dim=0)[:n]
    return {"c": (left * a_scale[..., None]).flatten(1) @ (right * of_row[..., None]).flatten(1).T}
