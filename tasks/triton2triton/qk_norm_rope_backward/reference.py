"""Oracle of the qk_norm_rope_backward task: gradients as complex numbers, and projections."""

import torch


def inputs(config, generator):
    """Draw heads with scales of their own, weight near 1, positions, tables, and gradients.

    Frequencies are 1e6^(-j / half); the tables start at a random position, and so differ between
    draws. Positions are those of packed sequences. Gradients differ in size by token.
    """
    tokens, heads, half = config["tokens"], config["heads"], config["half"]
    positions, dtype = config["positions"], config["dtype"]
    scale = 0.2 + 3.0 * torch.rand(tokens, heads, 1, generator=generator)
    x = scale * torch.randn(tokens, heads, 2 * half, generator=generator)
    weight = 1.0 + 0.3 * torch.randn(2 * half, generator=generator)
    begins = torch.rand(tokens, generator=generator) < 0.05
    jump = torch.randint(0, positions, (tokens,), generator=generator)
    position = (torch.arange(tokens) + (begins * jump).cumsum(0) + jump[0]) % positions
    start = torch.randint(0, 4096, (), generator=generator)
    place = torch.arange(positions, dtype=torch.float64) + start
    angle = place[:, None] * 1e6 ** (-torch.arange(half, dtype=torch.float64) / half)
    size = 0.3 + torch.rand(tokens, 1, 1, generator=generator)
    dy = size * torch.randn(tokens, heads, 2 * half, generator=generator)
    return {
        "x": x.to(dtype),
        "weight": weight.to(dtype),
        "position": position.to(torch.int32),
        "cos": angle.cos().float(),
        "sin": angle.sin().float(),
        "dy": dy.to(dtype),
    }


def reference(x, weight, position, cos, sin, dy, eps, half, **_):
    """Return dx [tokens, heads, 2 * half] and dweight [2 * half]."""
    place = position.long()
    turn = torch.complex(cos[place], -sin[place])[:, None, :]
    pair = torch.complex(dy[..., :half].contiguous(), dy[..., half:].contiguous()) * turn
    back = torch.cat((pair.real, pair.imag), dim=-1)
    scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    normal = x * scale
    gradient = back * weight
    along = (gradient * normal).mean(dim=-1, keepdim=True)
    return {
        "dx": scale * (gradient - normal * along),
        "dweight": (back * normal).sum(dim=(0, 1)),
    }
