"""Oracle and PyTorch baseline of the qkv_rope_backward task."""

import torch

BASE = 10000.0


def inputs(config, generator):
    """Draw gradients with a size a head, tables of angles, and positions of packed sequences.

    Positions start anew at any token and any place, and end where the table does. A few are those
    of single tokens.
    """
    tokens, heads, kv_heads = config["tokens"], config["heads"], config["kv_heads"]
    half, places, dtype = config["half"], config["places"], config["dtype"]

    def gradients(count):
        size = 0.2 + torch.rand(count, 1, generator=generator)
        return (size * torch.randn(tokens, count, 2 * half, generator=generator)).to(dtype)

    turn = 0.9 + 0.2 * torch.rand(half, generator=generator)
    angle = torch.arange(places)[:, None] * turn * BASE ** (-torch.arange(half) / half)
    place = torch.arange(tokens)
    begins = torch.rand(tokens, generator=generator) < 8.0 / tokens
    since = place - torch.where(begins, place, 0).cummax(0).values
    first = torch.randint(0, places, (tokens,), generator=generator)[begins.cumsum(0) - 1]
    single = torch.rand(tokens, generator=generator) < 0.01
    anywhere = torch.randint(0, places, (tokens,), generator=generator)
    return {
        "dq": gradients(heads),
        "dk": gradients(kv_heads),
        "dv": gradients(kv_heads),
        "cos": angle.cos(),
        "sin": angle.sin(),
        "position": torch.where(single, anywhere, (first + since) % places).to(torch.int32),
    }


def reference(dq, dk, dv, cos, sin, position, half, **_):
    """Return dqkv, rotated back as complex numbers."""
    turn = torch.complex(cos, -sin)[position.long()][:, None]
    parts = []
    for gradient in (dq, dk):
        turned = torch.complex(gradient[..., :half], gradient[..., half:]) * turn
        parts.append(torch.cat((turned.real, turned.imag), dim=-1).flatten(1))
    return {"dqkv": torch.cat((*parts, dv.flatten(1)), dim=1)}


def baseline(dq, dk, dv, cos, sin, position, half, **_):
    """Elementwise kernels in float32 for queries and keys, and a concatenation."""
    places = position.long()
    c, s = cos[places][:, None], sin[places][:, None]

    def back(gradient):
        low, high = gradient[..., :half], gradient[..., half:]
        turned = torch.cat((low * c + high * s, high * c - low * s), dim=-1)
        return turned.to(gradient.dtype).flatten(1)

    return {"dqkv": torch.cat((back(dq), back(dk), dv.flatten(1)), dim=1)}
