"""Oracle of the wkv6 task: one position after another, the bonus as a number a position."""

import torch


def inputs(config, generator):
    """Draw projections, speeds that differ by channel and a little by position, and a state.

    Some channels forget at once and others within hundreds of positions.
    """
    batch, seq, heads, dim = (config[name] for name in ("batch", "seq", "heads", "dim"))
    shape, dtype = (batch, seq, heads, dim), config["dtype"]
    r, k, v, noise = (torch.randn(shape, generator=generator) for _ in range(4))
    speed = 5.5 * torch.rand(heads, dim, generator=generator) - 5.0
    return {
        "r": (0.7 * r).to(dtype),
        "k": (0.7 * k).to(dtype),
        "v": (0.2 + v).to(dtype),
        "w": (speed + 0.4 * noise).to(dtype),
        "u": 0.5 * torch.randn(heads, dim, generator=generator),
        "first": torch.randn(batch, heads, dim, dim, generator=generator),
    }


def reference(r, k, v, w, u, first, seq, **_):
    """Return y [batch, seq, heads, dim] and last [batch, heads, dim, dim]."""
    keep = torch.exp(-torch.exp(w.clamp_max(8)))
    known = (r * u * k).sum(dim=-1, keepdim=True) * v
    state = first
    ys = []
    for t in range(seq):
        ys.append(torch.einsum("bhk,bhkv->bhv", r[:, t], state) + known[:, t])
        state = keep[:, t, :, :, None] * state + k[:, t, :, :, None] * v[:, t, :, None, :]
    return {"y": torch.stack(ys, dim=1), "last": state}
