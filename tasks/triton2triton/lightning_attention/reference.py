"""Oracle of the lightning_attention task: all products of queries and keys, times their decays."""

import torch


def inputs(config, generator):
    """Draw q and k of SiLU's range, and values with an offset.

    Products are of either sign, with a mean above zero, as SiLU leaves them.
    """
    batch, heads, seq, dim = (config[name] for name in ("batch", "heads", "seq", "dim"))
    shape, dtype = (batch, heads, seq, dim), config["dtype"]
    q = torch.nn.functional.silu(1.5 * torch.randn(shape, generator=generator))
    k = torch.nn.functional.silu(1.5 * torch.randn(shape, generator=generator))
    v = 0.3 + torch.randn(shape, generator=generator)
    size = dim**-0.5
    return {"q": (size * q).to(dtype), "k": k.to(dtype), "v": v.to(dtype)}


def reference(q, k, v, share, heads, seq, **_):
    """Return y [batch, heads, seq, dim]."""
    place = torch.arange(seq, device=q.device, dtype=q.dtype)
    back = place[:, None] - place
    y = torch.empty_like(q)
    for head in range(heads):
        slope = share * 2.0 ** (-8.0 * (head + 1) / heads)
        decay = torch.where(back >= 0, torch.exp(-slope * back.clamp_min(0)), 0.0)
        for sequence in range(q.shape[0]):
            score = q[sequence, head] @ k[sequence, head].T
            y[sequence, head] = (score * decay) @ v[sequence, head]
    return {"y": y}
