"""Oracle of the mla_query task: a product for each head, and pairs as complex numbers."""

import torch


def inputs(config, generator):
    """Draw queries with a mean a head, weights that keep sizes, and angles of any positions.

    A few columns of a head are large. Tokens are at places of different requests.
    """
    tokens, heads, dim = config["tokens"], config["heads"], config["dim"]
    rope, rank, dtype = config["rope"], config["rank"], config["dtype"]
    wide = dim + rope
    large = torch.where(torch.rand(heads, wide, generator=generator) < 0.03, 5.0, 1.0)
    mean = 0.5 * torch.randn(heads, wide, generator=generator)
    q = large * (mean + torch.randn(tokens, heads, wide, generator=generator))
    size = (0.5 + torch.rand(heads, 1, 1, generator=generator)) / dim**0.5
    weight = size * torch.randn(heads, dim, rank, generator=generator)
    place = torch.randint(0, 32768, (tokens, 1), generator=generator)
    speed = 10000.0 ** (-torch.arange(0, rope, 2, dtype=torch.float64) / rope)
    angle = place * speed
    return {
        "q": q.to(dtype),
        "weight": weight.to(dtype),
        "cos": angle.cos().float(),
        "sin": angle.sin().float(),
    }


def reference(q, weight, cos, sin, dim, **_):
    """Return y [tokens, heads, rank + rope]."""
    taken = torch.einsum("thi,hic->thc", q[..., :dim], weight)
    pairs = torch.view_as_complex(q[..., dim:].unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.complex(cos, sin)[:, None]
    return {"y": torch.cat((taken, turned.real, turned.imag), dim=-1)}
