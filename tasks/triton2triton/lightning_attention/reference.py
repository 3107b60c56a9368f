"""Oracle of the lightning_attention task: some positions at a time, for all heads at once."""

import torch

CHUNK = 64


def inputs(config, generator):
    """Draw q, k and v after their activations, and rates in the steps that such models have.

    Queries and keys are mostly positive. Some heads forget within two positions, and others within
    hundreds.
    """
    batch, heads, seq, dim = (config[name] for name in ("batch", "heads", "seq", "dim"))
    shape, dtype = (batch, heads, seq, dim), config["dtype"]
    q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
    slope = 2.0 ** (-8.0 * (torch.arange(heads) + torch.rand(heads, generator=generator)) / heads)
    return {
        "q": torch.nn.functional.silu(1.5 * q).to(dtype),
        "k": (torch.nn.functional.silu(1.5 * k) / dim**0.5).to(dtype),
        "v": (0.3 + v).to(dtype),
        "rate": slope,
    }


def reference(q, k, v, rate, seq, dim, **_):
    """Return y [batch, heads, seq, dim] and last [batch, heads, dim, dim]."""
    keep = torch.exp(-rate.abs())[:, None, None]
    state = q.new_zeros(*q.shape[:2], dim, dim)
    y = torch.empty_like(q)
    for first in range(0, seq, CHUNK):
        part = slice(first, first + CHUNK)
        place = torch.arange(len(range(seq)[part]), device=q.device)
        away = place[:, None] - place
        near = torch.where(away >= 0, keep ** away.clamp(min=0), 0.0)
        since, left = (keep ** n[:, None] for n in (place + 1, place.flip(0)))
        scores = q[:, :, part] @ k[:, :, part].mT * near
        y[:, :, part] = scores @ v[:, :, part] + since * q[:, :, part] @ state
        state = keep ** len(place) * state + (left * k[:, :, part]).mT @ v[:, :, part]
    return {"y": y, "last": state}
