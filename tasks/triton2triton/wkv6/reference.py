"""Oracle of the wkv6 task: some positions at a time, the bonus as a number a position."""

import torch

CHUNK = 16


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
    y = (r * u * k).sum(dim=-1, keepdim=True) * v
    state = first
    for place in range(0, seq, CHUNK):
        part = slice(place, place + CHUNK)
        rs, ks, vs = r[:, part], k[:, part], v[:, part]
        after = torch.cumsum(-torch.exp(w[:, part].clamp_max(8)), dim=1)  # logarithms
        before = torch.cat((torch.zeros_like(after[:, :1]), after[:, :-1]), dim=1)
        earlier = torch.ones(ks.shape[1], ks.shape[1], dtype=torch.bool, device=r.device).tril(-1)
        since = (before[:, :, None] - after[:, None]).where(earlier[:, :, None, None], -torch.inf)
        scores = (rs[:, :, None] * ks[:, None] * torch.exp(since)).sum(dim=-1)
        y[:, part] += torch.einsum("btsh,bshv->bthv", scores, vs)
        y[:, part] += torch.einsum("bthk,bhkv->bthv", rs * torch.exp(before), state)
        left = ks * torch.exp(after[:, -1:] - after)
        state = torch.exp(after[:, -1, :, :, None]) * state
        state = state + torch.einsum("bshk,bshv->bhkv", left, vs)
    return {"y": y, "last": state}
