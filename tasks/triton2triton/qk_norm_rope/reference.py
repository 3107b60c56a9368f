"""Oracle of the qk_norm_rope task: normalised pairs, as complex numbers, times cos + i sin."""

import torch


def inputs(config, generator):
    """Draw heads with scales of their own, weight near 1, positions, and tables of real angles.

    Frequencies are 1e6^(-j / half); the tables start at a random position, and so differ between
    draws. Positions are those of packed sequences: runs that start anywhere.
    """
    tokens, heads, half = config["tokens"], config["heads"], config["half"]
    positions, dtype = config["positions"], config["dtype"]
    scale = 0.1 + 3.0 * torch.rand(tokens, heads, 1, generator=generator)
    x = scale * torch.randn(tokens, heads, 2 * half, generator=generator)
    weight = 1.0 + 0.3 * torch.randn(2 * half, generator=generator)
    begins = torch.rand(tokens, generator=generator) < 0.05
    jump = torch.randint(0, positions, (tokens,), generator=generator)
    position = (torch.arange(tokens) + (begins * jump).cumsum(0) + jump[0]) % positions
    start = torch.randint(0, 4096, (), generator=generator)
    place = torch.arange(positions, dtype=torch.float64) + start
    angle = place[:, None] * 1e6 ** (-torch.arange(half, dtype=torch.float64) / half)
    return {
        "x": x.to(dtype),
        "weight": weight.to(dtype),
        "position": position.to(torch.int32),
        "cos": angle.cos().float(),
        "sin": angle.sin().float(),
    }


def reference(x, weight, position, cos, sin, eps, half, **_):
    """Return y [tokens, heads, 2 * half]."""
    normal = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps) * weight
    pair = torch.complex(normal[..., :half].contiguous(), normal[..., half:].contiguous())
    place = position.long()
    rotated = pair * torch.complex(cos[place], sin[place])[:, None, :]
    return {"y": torch.cat((rotated.real, rotated.imag), dim=-1)}
